// Package shell is the built-in tools that run commands: shell.exec, a command
// line for /bin/sh, and bash, tmux and zellij, with arguments of their own, which on
// a terminal are those programs themselves. Commands of calls have no terminal and no
// input, their output is kept in bounded memory, with all of a long one in
// a file, and their processes are gone when the call ends.
package shell

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/spill"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Config is what commands of every call have.
type Config struct {
	Environ []string // complete
	// Limit bounds each command whatever its call asks for, so that what it wrote
	// survives; 0 is no bound, and then libctx.ShellTimeout where the call asks for
	// none.
	Limit time.Duration
	Spill spill.Place // where all of a long output is kept
	// Live gets what commands write as it comes, the first libctx.MaxToolResult
	// bytes of each; nil if nobody is to have it.
	Live io.Writer
}

const sh = "/bin/sh"

// Exec is shell.exec.
func Exec(conf Config) tool.Tool {
	return tool.Tool{
		Name: "shell.exec",
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			a := struct {
				Cmd       string `json:"cmd"`
				TimeoutMS *int64 `json:"timeout_ms"`
			}{}
			if err := tool.Decode(args, &a); err != nil {
				return err
			}
			if a.Cmd == "" {
				return errdefs.New(errdefs.Invalid, "arguments: cmd is missing or empty")
			}
			return conf.run(ctx, []string{sh, "-c", "--", a.Cmd}, a.TimeoutMS, out)
		},
	}
}

// Bash is bash.
func Bash(conf Config) tool.Tool {
	return tool.Tool{
		Name:   "bash",
		Become: conf.become("bash"),
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			a := struct {
				Script    string   `json:"script"`
				Args      []string `json:"args"`
				TimeoutMS *int64   `json:"timeout_ms"`
			}{}
			if err := tool.Decode(args, &a); err != nil {
				return err
			}
			if a.Script == "" && len(a.Args) == 0 {
				return errdefs.New(errdefs.Invalid, "arguments: neither script nor args says what to run")
			}
			bash, err := program.Find("bash")
			if err != nil {
				return err
			}
			argv := append([]string{bash}, a.Args...)
			if a.Script != "" {
				argv = append([]string{bash, "-c", "--", a.Script, bash}, a.Args...)
			}
			return conf.run(ctx, argv, a.TimeoutMS, out)
		},
	}
}

// Program is a tool that is one program of the host.
func Program(name libctx.Tool, conf Config) tool.Tool {
	return tool.Tool{
		Name:   name,
		Become: conf.become(name),
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			a := struct {
				Args      []string `json:"args"`
				TimeoutMS *int64   `json:"timeout_ms"`
			}{}
			if err := tool.Decode(args, &a); err != nil {
				return err
			}
			path, err := program.Find(name)
			if err != nil {
				return err
			}
			return conf.run(ctx, append([]string{path}, a.Args...), a.TimeoutMS, out)
		},
	}
}

// become makes this process the program of a tool.
func (conf Config) become(name libctx.Tool) func(words []string) error {
	return func(words []string) error {
		path, err := program.Find(name)
		if err != nil {
			return err
		}
		err = unix.Exec(path, append([]string{string(name)}, words...), conf.Environ)
		return errdefs.New(errdefs.Unavailable, "%s did not start: %w", path, err)
	}
}

// room is what a result has for the text of a command.
const room = libctx.MaxToolResult - tool.Reserve

func (conf Config) run(ctx context.Context, argv []string, asked *int64, out *tool.Output) error {
	timeout, err := conf.timeout(asked)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(argv, func(w string) bool { return strings.ContainsRune(w, 0) }) {
		return errdefs.New(errdefs.Invalid, "arguments: a word holds a NUL character")
	}
	kept := capture.New(room - 100) // the line between head and tail has room too
	lines := capture.NewCondenser(kept)
	all := spill.New(conf.Spill, libctx.MaxToolResult)
	to := []io.Writer{all, lines}
	if conf.Live != nil {
		to = append(to, &head{conf.Live, libctx.MaxToolResult})
	}
	text := &cleaner{w: io.MultiWriter(to...)}
	end, err := command(ctx, argv, conf.Environ, timeout, text)
	if err != nil {
		all.Finish(false)
		return err
	}
	text.flush()
	lines.Flush()
	shown, cut := wire.Clip(kept.Text(), room) // a character cut in two may be a little longer
	out.WriteString(shown)
	if cut = cut || kept.Truncated(); cut {
		out.Truncated()
	}
	out.Exit(end.code)
	err = end.report(out, timeout)
	if n := lines.Dropped(); n > 0 {
		out.Notef("%d bytes that bare carriage returns wrote over are left out", n)
	}
	switch file, ok, lost := all.Finish(cut || lines.Dropped() > 0); {
	case lost != nil:
		out.Notef("%s", lost)
	case ok && file.Cut:
		out.Notef("first %d MiB, as text, of an output of %d bytes: %s; fs.read pages it", libctx.MaxSpillFile>>20, text.raw, file.Path)
	case ok:
		out.Notef("full output, %d bytes in %d lines: %s; fs.read pages it", text.raw, file.Lines, file.Path)
	}
	return err
}

// timeout is how long a command may take.
func (conf Config) timeout(asked *int64) (time.Duration, error) {
	timeout := libctx.ShellTimeout
	if conf.Limit > 0 {
		timeout = conf.Limit
	}
	if asked == nil {
		return timeout, nil
	}
	if *asked < 1 || *asked > libctx.MaxToolTimeout.Milliseconds() {
		return 0, errdefs.New(errdefs.Invalid, "arguments: timeout_ms is %d, not 1 to %d", *asked, libctx.MaxToolTimeout.Milliseconds())
	}
	if t := time.Duration(*asked) * time.Millisecond; conf.Limit == 0 || t < conf.Limit {
		timeout = t
	}
	return timeout, nil
}

// report writes the notes about how the command ended, and returns an error
// unless it ended well.
func (e ending) report(out *tool.Output, timeout time.Duration) error {
	took := e.took.Round(time.Millisecond)
	switch {
	case e.timedOut:
		out.Notef("timed out after %v and was killed, exit %d, %v", timeout, e.code, took)
	case e.cancelled != nil:
		out.Notef("cancelled and killed (%v), exit %d, %v", e.cancelled, e.code, took)
	case e.signal != "":
		out.Notef("killed by %s, exit %d, %v", e.signal, e.code, took)
	default:
		out.Notef("exit %d, %v", e.code, took)
	}
	if e.leftover {
		out.Notef("a process left in the background still held the output open; the rest of it is lost")
	}
	switch {
	case e.timedOut:
		return errdefs.New(errdefs.Timeout, "command timed out after %v", timeout)
	case e.cancelled != nil:
		return errdefs.New(errdefs.Cancelled, "command was cancelled: %w", e.cancelled)
	case e.code != 0:
		return errdefs.New(errdefs.IO, "command failed: exit %d", e.code)
	}
	return nil
}
