package host

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/wire"
)

// output is what one step came to.
type output struct {
	text string         // what it said
	call *wire.ToolCall // what it yielded, nil at the end of the run
}

// step starts the executable once and reads it to its end. The agent's files
// are read anew, so that a change between two steps counts.
func (h *Host) step(ctx context.Context, r *run.Run, inv *envelope.Invocation) (output, error) {
	body, err := inv.Encode()
	if err != nil {
		return output{}, err
	}
	a, err := h.load()
	if err != nil {
		return output{}, err
	}
	spec, release, err := h.Tools.AgentSpec(a, r.Places.Workspace, r.Places.Cwd, r.Control.Path())
	if err != nil {
		return output{}, err
	}
	defer release()
	spec.Env = a.Environ(
		"CTX_SESSION="+string(r.Session), "CTX_RUN_ID="+string(r.ID), fmt.Sprintf("CTX_STEP=%d", inv.Step), toolrun.ControlVariable)

	limited, cancel := context.WithTimeoutCause(ctx, libctx.AgentStepTimeout,
		errdefs.New(errdefs.Timeout, "the agent's step %d took longer than %s", inv.Step, libctx.AgentStepTimeout))
	defer cancel()
	reader := &stepReader{run: r, frames: envelope.NewOutput(r.ID)}
	stderr := capture.New(libctx.MaxAgentStderr)
	end, err := h.Launcher.Run(limited, spec, sandboxrun.Stdio{
		Stdin: body, Stdout: reader, Stderr: stderr,
		Started: func(first procid.ID) error {
			r.Watch.Before(changes.Reach{Anything: true}) // it is a program that sees the workspace
			return r.Control.Register(first, "")
		},
	})
	if ctx.Err() != nil {
		return output{}, context.Cause(ctx)
	}
	if err == nil {
		err = reader.end()
	}
	if err == nil && end.ExitCode != 0 {
		err = errdefs.New(errdefs.Protocol, "agent ended with status %d%s", end.ExitCode, lastLine(stderr.Text()))
	}
	if stderr.Len() > 0 {
		h.Log.Debug("agent wrote to stderr", "session", r.Session, "run", r.ID, "step", inv.Step, "bytes", stderr.Len())
	}
	if err != nil {
		return output{}, err
	}
	call := reader.frames.ToolCall()
	return output{reader.text(call != nil), call}, nil
}

// lastLine is the last line of an agent's standard error, as the end of an
// error message.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	last, _ := wire.Clip(strings.TrimSpace(lines[len(lines)-1]), 500)
	if last == "" {
		return ""
	}
	return ": " + last
}

// stepReader takes the standard output of a step as it comes: whole lines go to
// the state machine, what it accepts as provisional goes to the clients.
type stepReader struct {
	run      *run.Run
	frames   *envelope.Output
	part     []byte // an unfinished line
	total    int
	messages []string
	deltas   strings.Builder
}

// Write implements io.Writer for the launcher: its error ends the step.
func (s *stepReader) Write(p []byte) (int, error) {
	n := len(p)
	if s.total += n; s.total > libctx.MaxAgentOutput {
		return 0, errdefs.New(errdefs.Protocol, "agent wrote more than %d bytes in one step", libctx.MaxAgentOutput)
	}
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			s.part = append(s.part, p...)
			if len(s.part) >= libctx.MaxAgentFrame {
				return 0, errdefs.New(errdefs.Protocol, "agent wrote a frame longer than %d bytes", libctx.MaxAgentFrame)
			}
			return n, nil
		}
		if err := s.line(append(s.part, line...)); err != nil {
			return 0, err
		}
		s.part, p = s.part[:0], rest
	}
}

func (s *stepReader) line(line []byte) error {
	f, err := s.frames.Line(line)
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *wire.Delta:
		if f.Type == "delta" {
			s.deltas.WriteString(f.Text)
		}
		s.run.EmitText(f.Type, f.Text)
	case *wire.Message:
		var text strings.Builder
		for _, p := range f.Content {
			text.WriteString(p.Text)
		}
		s.messages = append(s.messages, text.String())
	case *wire.Error:
		return s.run.Record(f)
	}
	return nil
}

// end refuses an unfinished last line.
func (s *stepReader) end() error {
	if len(s.part) > 0 {
		return errdefs.New(errdefs.Protocol, "agent's last frame has no newline")
	}
	return nil
}

// text is what the step said for the record: its messages. Deltas are
// provisional; only a run that ends without any message is taken to mean them.
func (s *stepReader) text(yielded bool) string {
	if len(s.messages) > 0 || yielded {
		return strings.Join(s.messages, "\n")
	}
	return s.deltas.String()
}
