package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/tsh/internal/job"
	"golang.org/x/sys/unix"
)

// run carries out one command and notes its exit code; start runs what was
// admitted. It reports whether the command was exit.
func (sh *shell) run(words []string, start func(job.Program) error) (ended bool) {
	if command.Is(words[0]) {
		return sh.builtin(words, toolshell.Shell{Topics: toolshell.Topics()})
	}
	if sh.agent == nil {
		err := sh.elsewhere(words[0])
		sh.complain(err)
		sh.exit = errdefs.KindOf(err).Exit()
		return false
	}
	p, err := sh.admit(words)
	if err == nil {
		err = start(p)
	}
	if err != nil {
		sh.refuse(err)
	}
	return false
}

// builtin carries out one builtin. The shell has what is to be explained besides.
func (sh *shell) builtin(words []string, explain toolshell.Shell) (ended bool) {
	explain.Catalog, explain.Store, explain.Config = sh.catalog(), sh.loaded, sh.config
	out := explain.Run(words)
	fmt.Fprint(sh.std.Out, inert.Text(out.Text))
	sh.complain(out.Errs...)
	sh.exit = out.Exit
	return out.Ended
}

// Exit codes of a command that does not run, as shells have them.
const (
	exitRefused  = 126
	exitNotFound = 127
)

// refuse says why a command does not run.
func (sh *shell) refuse(err error) {
	sh.complain(err)
	sh.exit = exitRefused
	if errdefs.Is(err, errdefs.NotFound) {
		sh.exit = exitNotFound
	}
}

// admit decides about a command, from the files of this moment, and returns what it
// runs.
func (sh *shell) admit(words []string) (job.Program, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return job.Program{}, errdefs.New(errdefs.Denied, "the directory here is gone: %w", err)
	}
	path, err := sh.agent.Admit(words, cwd)
	if err != nil {
		return job.Program{}, err
	}
	return job.Program{Path: sh.layout.HostPath(path), Argv: words, Env: sh.conf.Environ}, nil
}

// elsewhere is what a word that is no builtin comes to where there is no agent whose
// terminal this is: an error. Running a tool needs an agent's identity, and
// admission by the agent's host.
func (sh *shell) elsewhere(word string) error {
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

// wait runs a program to its end. What it reads is the terminal, or nothing: other
// input is the shell's own.
func (sh *shell) wait(p job.Program) error {
	in := os.Stdin
	if !sh.std.InTerminal {
		var err error
		if in, err = os.Open(os.DevNull); err != nil {
			return errdefs.New(errdefs.Denied, "%w", err)
		}
		defer in.Close()
	}
	keys := make(chan os.Signal, 1) // for the program
	signal.Notify(keys, unix.SIGINT, unix.SIGQUIT)
	defer signal.Stop(keys)
	code, err := job.Wait(p, [3]*os.File{in, os.Stdout, os.Stderr})
	sh.exit = code
	return err
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
		for _, l := range lines {
			if l.Background {
				sh.complain(errdefs.New(errdefs.Invalid, "only a terminal has jobs in the background"))
				sh.exit = errdefs.Invalid.Exit()
			} else if sh.run(l.Words, sh.wait) {
				return nil
			}
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
