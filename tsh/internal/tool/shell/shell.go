// Package shell is the built-in tool shell.exec: one command line for /bin/sh,
// without a terminal and without input, its output kept in bounded memory, its
// processes gone when the call ends.
package shell

import (
	"context"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
)

// Exec is shell.exec. Environ is the environment of the commands, complete.
// limit bounds each command whatever its call asks for, so that what it wrote
// survives; 0 is no bound, and then libctx.ShellTimeout where the call asks for
// none.
func Exec(environ []string, limit time.Duration) tool.Tool {
	return tool.Tool{
		Name: "shell.exec",
		Form: tool.Form{Rest: "cmd"},
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			return run(ctx, args, environ, limit, out)
		},
	}
}

func run(ctx context.Context, args jsontext.Value, environ []string, limit time.Duration, out *tool.Output) error {
	a := struct {
		Cmd       string `json:"cmd"`
		TimeoutMS *int64 `json:"timeout_ms"`
	}{}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	timeout := libctx.ShellTimeout
	if limit > 0 {
		timeout = limit
	}
	if a.TimeoutMS != nil {
		if *a.TimeoutMS < 1 || *a.TimeoutMS > libctx.MaxToolTimeout.Milliseconds() {
			return errdefs.New(errdefs.Invalid, "arguments: timeout_ms is %d, not 1 to %d", *a.TimeoutMS, libctx.MaxToolTimeout.Milliseconds())
		}
		asked := time.Duration(*a.TimeoutMS) * time.Millisecond
		if limit == 0 || asked < limit {
			timeout = asked
		}
	}
	switch {
	case a.Cmd == "":
		return errdefs.New(errdefs.Invalid, "arguments: cmd is missing or empty")
	case strings.ContainsRune(a.Cmd, 0):
		return errdefs.New(errdefs.Invalid, "arguments: cmd holds a NUL character")
	}
	const room = libctx.MaxToolResult - tool.Reserve
	kept := capture.New(room - 100) // the line between head and tail has room too
	end, err := command(ctx, a.Cmd, environ, timeout, kept)
	if err != nil {
		return err
	}
	// Marks for what is not text are longer than what they stand for.
	text, cut := wire.Clip(kept.Text(), room)
	out.WriteString(text)
	if cut || kept.Truncated() {
		out.Truncated()
	}
	out.Exit(end.code)
	return end.report(out, timeout)
}

// report writes the notes about how the command ended, and returns an error
// unless it ended well.
func (e ending) report(out *tool.Output, timeout time.Duration) error {
	took := e.took.Round(time.Millisecond)
	switch {
	case e.timedOut:
		out.Notef("timed out after %v and was killed, exit %d, %v", timeout, e.code, took)
	case e.cancelled:
		out.Notef("cancelled and killed, exit %d, %v", e.code, took)
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
	case e.cancelled:
		return errdefs.New(errdefs.Cancelled, "command was cancelled")
	case e.code != 0:
		return errdefs.New(errdefs.IO, "command failed: exit %d", e.code)
	}
	return nil
}
