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

// presenter shows the outcome of a call and returns the exit code. Begin comes
// before the tool runs.
type presenter interface {
	begin() error
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

func (p *plain) begin() error { return nil }

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
	case out.ExitCode() != nil: // the notes say it already
		return errdefs.KindOf(err).Exit()
	}
	return complain(p.std.Err, err)
}

// frames is for the host. A failed call that has output has it in the message of
// its error: the model sees that. How a command ended is in its output already,
// of every other failure the reason stands below.
type frames struct {
	*toolwire.Encoder
	errs io.Writer
}

func newFrames(std Streams, run, tool string) *frames {
	return &frames{toolwire.NewEncoder(std.Out, run, tool), std.Err}
}

// begin writes the first frame, so that the host can tell a tool that was killed
// from a program that is none.
func (f *frames) begin() error { return f.Start() }

func (f *frames) present(out *tool.Output, err error) int {
	if code := out.ExitCode(); code != nil {
		f.Exit(*code)
	}
	if out.IsTruncated() {
		f.Truncated()
	}
	content := out.Content()
	var werr error
	if err == nil {
		werr = f.Text(content)
	} else {
		if content == "" || out.ExitCode() == nil {
			if content != "" && !strings.HasSuffix(content, "\n") {
				content += "\n"
			}
			content += err.Error()
			if hint := errdefs.HintOf(err); hint != "" {
				content += " (" + hint + ")"
			}
		}
		werr = f.Fail(errdefs.KindOf(err), content)
	}
	if werr == nil {
		werr = f.Done()
	}
	if werr != nil {
		return complain(f.errs, werr)
	}
	return 0
}
