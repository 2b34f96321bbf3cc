package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/command"
)

// run carries out one command and notes its exit code. It reports whether the
// command was exit.
func (sh *shell) run(words []string) (ended bool) {
	if !command.Is(words[0]) {
		err := sh.tool(words[0])
		sh.complain(err)
		sh.exit = errdefs.KindOf(err).Exit()
		return false
	}
	builtins := toolshell.Shell{Catalog: sh, Store: sh.loaded, Config: sh.config, Topics: toolshell.Topics()}
	out := builtins.Run(words)
	fmt.Fprint(sh.std.Out, inert.Text(out.Text))
	sh.complain(out.Errs...)
	sh.exit = out.Exit
	return out.Ended
}

// tool is what a word that is no builtin comes to: an error. Running a tool
// needs an agent's identity, and admission by the agent's host.
func (sh *shell) tool(word string) error {
	name, err := libctx.ParseTool(word)
	if err != nil {
		return err
	}
	if _, err := sh.Find(name); err != nil {
		return err
	}
	if sh.conf.Agent == "" {
		return errdefs.New(errdefs.Unavailable, "%s: tools run with the identity of an agent, and there is none here", name).
			WithHint("ctx agent tsh AGENT -- %s …", name)
	}
	return errdefs.New(errdefs.Unavailable, "%s: calls go through the agent's host, not through this shell", name).
		WithHint("ctx agent tsh %s -- %s …", sh.conf.Agent, name)
}

const prompt = "tsh> "

// interact carries out the lines of standard input. It ends with exit, or at the
// end of the input with the code of the last command.
func (sh *shell) interact() error {
	if sh.loaded == nil {
		sh.loaded = &toolshell.Memory{}
	}
	in := bufio.NewReader(sh.std.In)
	for {
		if sh.std.InTerminal {
			fmt.Fprint(sh.std.Err, prompt)
		}
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			if sh.std.InTerminal {
				fmt.Fprintln(sh.std.Err)
			}
			return nil
		}
		if err != nil && !errdefs.Is(err, errdefs.TooBig) {
			return errdefs.New(errdefs.IO, "standard input: %w", err)
		}
		var lines []command.Line
		if err == nil {
			lines, err = command.Lines(line)
		}
		if err != nil {
			sh.complain(err)
			sh.exit = errdefs.Invalid.Exit()
			continue
		}
		if len(lines) > 0 && sh.run(lines[0].Words) {
			return nil
		}
	}
}

// readLine reads one line without its end. One that is too long is read to its
// end, dropped, and errdefs.TooBig.
func readLine(in *bufio.Reader) (string, error) {
	var line strings.Builder
	tooLong := false
	for {
		part, err := in.ReadSlice('\n')
		if tooLong = tooLong || line.Len()+len(part) > libctx.MaxShellLine; !tooLong {
			line.Write(part)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || line.Len() == 0 && !tooLong):
			return "", err
		case tooLong:
			return "", errdefs.New(errdefs.TooBig, "a line is longer than %d bytes", libctx.MaxShellLine)
		}
		return strings.TrimSuffix(strings.TrimSuffix(line.String(), "\n"), "\r"), nil
	}
}
