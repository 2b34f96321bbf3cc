// Package multicall is the program ctxtool: one binary for all built-in tools.
// It finds out which tool is meant and with which arguments, runs it, and
// presents the result: as frames to the host, as text to a person.
package multicall

import (
	"context"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/edit"
	"cortexfs.org/tsh/internal/tool/fs"
	"cortexfs.org/tsh/internal/tool/search"
	"cortexfs.org/tsh/internal/tool/settings"
	"cortexfs.org/tsh/internal/tool/shell"
	"cortexfs.org/tsh/internal/tool/spill"
	"cortexfs.org/tsh/internal/tool/update"
	"cortexfs.org/tsh/internal/toolfile"
	"github.com/go-json-experiment/json/jsontext"
)

// Streams are the standard streams of the program and what they are.
type Streams struct {
	In          io.Reader
	Out, Err    io.Writer
	InTerminal  bool // standard input is a terminal: it holds no arguments
	OutTerminal bool // standard output is a terminal: what it shows is made inert
}

// Tools is the one table of what ctxtool can do, by name. What commands write
// goes to live as it comes, if that is not nil, the first libctx.MaxToolResult
// bytes of it: should this process be killed, that is what is left.
func Tools(conf config.Tool, live io.Writer) []tool.Tool {
	run := shell.Config{Environ: conf.Environ, Limit: conf.Timeout, Live: live}
	if conf.Home != "" {
		run.Spill = spill.Place{Home: conf.Home, Dir: paths.SpillDir + "/" + conf.Session, Run: conf.Run}
	}
	return []tool.Tool{
		update.Tool(conf.Self), shell.Bash(run), fs.List, fs.Read, edit.Replace, search.Search(conf.Timeout), fs.Stat, edit.Write, shell.Exec(run),
		shell.Program("tmux", run), settings.Tsh(conf.Shell), shell.Program("zellij", run),
	}
}

// Main runs ctxtool with the words behind its name and returns its exit code.
// In json mode that is 0 whenever the frames could be written, since they tell
// how the call went.
func Main(ctx context.Context, args []string, conf config.Tool, std Streams) int {
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" || args[0] == "help" && len(args) == 1 {
		usage(std.Out)
		return 0
	}
	if args[0] == "help" && len(args) == 2 {
		args = []string{args[1], "--help"}
	}
	if args[0] == "--version" {
		fmt.Fprintln(std.Out, "ctxtool", libctx.Build())
		return 0
	}
	var live io.Writer
	if conf.JSON {
		live = std.Err
	}
	t, err := find(args[0], Tools(conf, live))
	if err != nil {
		return complain(std.Err, err)
	}
	if t.Become != nil && std.InTerminal && !conf.JSON && !(len(args) == 2 && form.IsObject(args[1])) {
		return complain(std.Err, t.Become(args[1:]))
	}
	if len(args) == 2 && (args[1] == "--help" || args[1] == "-h") && !conf.JSON {
		explain(std.Out, t)
		return 0
	}
	var p presenter = &plain{std: std}
	if conf.JSON {
		p = newFrames(std, conf.Run, string(t.Name))
	}
	if err := p.begin(); err != nil {
		return complain(std.Err, err)
	}
	out := new(tool.Output)
	raw, err := arguments(args[1:], std)
	if err == nil {
		err = t.Call(ctx, raw, out)
	}
	return p.present(out, err)
}

// find is the tool that the first word means: a name, or the path of a two-line
// tool file, which the kernel passes to an interpreter.
func find(word string, tools []tool.Tool) (tool.Tool, error) {
	name := libctx.Tool(word)
	if strings.Contains(word, "/") {
		var err error
		if name, err = toolfile.Read(word); err != nil {
			return tool.Tool{}, err
		}
	}
	for _, t := range tools {
		if t.Name == name {
			return t, nil
		}
	}
	return tool.Tool{}, errdefs.New(errdefs.Invalid, "%.80q: no such tool", name).WithHint("ctxtool lists the tools")
}

// arguments are the raw arguments of the call: one word that is a JSON object,
// else the words as the tool's command-line form, else what standard input
// holds, else an empty object.
func arguments(words []string, std Streams) (jsontext.Value, error) {
	if len(words) == 1 && form.IsObject(words[0]) {
		return jsontext.Value(words[0]), nil
	}
	if len(words) > 0 {
		return form.Words(words)
	}
	if std.InTerminal {
		return jsontext.Value("{}"), nil
	}
	text, err := io.ReadAll(io.LimitReader(std.In, libctx.MaxToolArguments+1))
	switch {
	case err != nil:
		return nil, errdefs.New(errdefs.KindOf(err), "standard input: %w", err)
	case len(text) > libctx.MaxToolArguments:
		return nil, errdefs.New(errdefs.TooBig, "arguments are longer than %d bytes", libctx.MaxToolArguments)
	case len(text) == 0:
		return jsontext.Value("{}"), nil
	}
	return text, nil
}

func usage(w io.Writer) {
	fmt.Fprint(w, "ctxtool NAME [JSON | WORDS…]   run a built-in tool; arguments come from standard input if there are none\n"+
		"ctxtool NAME --help            explain one\n\n")
	for _, t := range Tools(config.Tool{}, nil) {
		first, _, _ := strings.Cut(about.Description(t.Name), ". ")
		fmt.Fprintf(w, "%-12s %s\n", t.Name, strings.TrimSuffix(first, "."))
	}
}

func explain(w io.Writer, t tool.Tool) {
	fmt.Fprintf(w, "%s\n%s JSON\n\n%s\n\nexamples\n", t.Form().Usage(string(t.Name)), t.Name, about.Description(t.Name))
	for line := range strings.Lines(about.Examples(t.Name) + "\n") {
		fmt.Fprintf(w, "  ctxtool %s", line)
	}
	fmt.Fprintf(w, "\nJSON is one object of this schema\n  %s\n", about.Schema(t.Name))
}
