package multicall

import (
	"fmt"
	"io"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolwire"
	"cortexfs.org/tsh/internal/tool"
)

// presenter shows the outcome of a call and returns the exit code.
type presenter interface {
	present(out *tool.Output, err error) int
}

// complain writes an error the way every program of the suite does.
func complain(w io.Writer, err error) int {
	fmt.Fprintf(w, "ctxtool: %s\n", inert.Text(err.Error()))
	if hint := errdefs.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", inert.Text(hint))
	}
	return errdefs.KindOf(err).Exit()
}

// plain is for people: the text alone on standard output, so that it can be
// redirected, notes and errors on standard error.
type plain struct{ std Streams }

func (p *plain) present(out *tool.Output, err error) int {
	text := out.Text()
	if p.std.OutTerminal {
		text = inert.Text(text)
	}
	if _, werr := io.WriteString(p.std.Out, text); werr != nil {
		return complain(p.std.Err, errdefs.New(errdefs.KindOf(werr), "standard output: %w", werr))
	}
	if len(out.Notes()) > 0 && p.std.OutTerminal && text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(p.std.Out)
	}
	for _, note := range out.Notes() {
		fmt.Fprintln(p.std.Err, inert.Text(note))
	}
	switch {
	case err == nil:
		return 0
	case len(out.Notes()) > 0: // they say it already
		return errdefs.KindOf(err).Exit()
	}
	return complain(p.std.Err, err)
}

// frames is for the host. A failed call that has output, such as a command that
// ended badly, has it as the message of its error: the model sees that.
type frames struct {
	w, errs   io.Writer
	run, tool string
}

func (f *frames) present(out *tool.Output, err error) int {
	e := toolwire.NewEncoder(f.w, f.run, f.tool)
	if code := out.ExitCode(); code != nil {
		e.Exit(*code)
	}
	if out.IsTruncated() {
		e.Truncated()
	}
	content := out.Content()
	var werr error
	switch {
	case err == nil:
		werr = e.Text(content)
	case content != "":
		werr = e.Fail(errdefs.KindOf(err), content)
	default:
		content = err.Error()
		if hint := errdefs.HintOf(err); hint != "" {
			content += " (" + hint + ")"
		}
		werr = e.Fail(errdefs.KindOf(err), content)
	}
	if werr == nil {
		werr = e.Done()
	}
	if werr != nil {
		return complain(f.errs, werr)
	}
	return 0
}
