// Package toolrun turns one tool call into one sandbox: it asks admission with
// the agent's files read afresh, starts what was admitted and has a permit, and
// makes a result of whatever comes out. Every call of every source goes through
// Admit.
package toolrun

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"cortexfs.org/ctxd/internal/broker"
	"cortexfs.org/ctxd/internal/capsock"
	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Runner starts the tools of one agent.
type Runner struct {
	Layout   paths.Layout
	Agent    libctx.Agent
	Launcher *sandboxrun.Launcher
	Ctxtool  string   // host path of ctxtool
	Tsh      string   // host path of tsh, "" if there is none
	Programs []string // host paths of the suite's programs, free of links

	loaded sync.Mutex // held from reading a session's loaded tools to writing them
}

// Call is one tool call with the run it belongs to.
type Call struct {
	ID        libctx.Call
	Name      libctx.Tool
	Arguments jsontext.Value
	Run       libctx.Run
	Session   libctx.Session
	Workspace string   // host directory; with Cwd the run's unless the call is of another
	Cwd       string   // inside path
	Env       []string // of the tool, besides what every call gets; the runtime's own names only
	// Loaded is the loaded tools of a session that lives in memory, nil for one
	// with a directory.
	Loaded *toolshell.Memory
	// Control is the run's capability, nil for a call that is only judged.
	Control *capsock.Capability
	// Watch is told what the call can change, nil for one that is only judged.
	Watch *changes.Watch
}

// Result is what a call came to. Status is "ok" or "error".
type Result struct {
	Status    string
	Content   string
	Truncated bool
	ExitCode  *int
	Duration  time.Duration
}

// Failure is a result that says why nothing useful came out.
func Failure(content string) Result { return Result{Status: "error", Content: content} }

// Execute runs the call in a sandbox of its own and returns its result; a builtin
// of the shell needs none. The permit is used up by it, when everything is ready
// and immediately before something runs; without one that is for this call nothing
// does. The result is always worth recording; an error says in addition that the
// run can not go on: no sandbox can be started here, or the context ended.
func (a *Admitted) Execute(ctx context.Context, permit *broker.Permit) (Result, error) {
	var res Result
	var err error
	if a.words != nil {
		if !a.begins(permit) {
			return notBegun, nil
		}
		res = a.builtin()
	} else {
		res, err = a.sandboxed(ctx, permit)
	}
	content, cut := wire.Clip(res.Content, min(a.agent.ResultBytes, libctx.MaxToolResultHard))
	res.Content, res.Truncated = content, res.Truncated || cut
	if res.Status == "ok" && a.words == nil {
		a.runner.use(a.store, a.inner.Name)
	}
	return res, err
}

// sandboxed is the call of a tool.
func (a *Admitted) sandboxed(ctx context.Context, permit *broker.Permit) (Result, error) {
	spec, release, err := a.runner.spec(a.agent, a.call.Workspace, a.call.Cwd, a.tool)
	if err != nil {
		return Failure("the tool could not be started"), err
	}
	defer release()
	// A tool of mode json answers as a whole or not at all. It is told when its
	// time is up and gets a little more, to answer with what it has.
	mode, timeout := "cli", a.agent.Timeout
	env := append([]string{"CTX_SESSION=" + string(a.call.Session), "CTX_RUN_ID=" + string(a.call.Run), ControlVariable}, a.call.Env...)
	if !a.tool.CLIOnly {
		mode, timeout = "json", timeout+libctx.ToolTimeoutGrace
		env = append(env, "CTX_TOOL_TIMEOUT_MS="+strconv.FormatInt(a.agent.Timeout.Milliseconds(), 10))
	}
	spec.Kind, spec.Control = sandbox.Tool, a.call.Control.Path()
	spec.Argv = []string{a.tool.Path}
	spec.Env = a.agent.Environ(append(env, "CTX_TOOL_MODE="+mode)...)

	limited, cancel := context.WithTimeoutCause(ctx, timeout,
		errdefs.New(errdefs.Timeout, "the tool ran longer than %s", a.agent.Timeout))
	defer cancel()
	if !a.begins(permit) {
		return notBegun, nil
	}
	var res Result
	if mode == "json" {
		res, err = a.json(limited, spec)
	} else {
		res, err = a.cli(limited, spec)
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		err = nil // the tool's own time was up, the run goes on
	}
	return res, err
}

// started comes before anything of the tool runs. It lets the processes of the call's
// sandbox use the run's capability.
func (a *Admitted) started(first procid.ID) error {
	a.call.Watch.Before(a.Reach())
	return a.call.Control.Register(first, a.inner.Name)
}

// cli runs a tool that takes words and prints text.
func (a *Admitted) cli(ctx context.Context, spec sandbox.Spec) (Result, error) {
	var form struct {
		Args []string `json:"args"`
	}
	if err := json.Unmarshal(a.inner.Arguments, &form); err != nil {
		return Failure("the arguments do not fit the tool"), err
	}
	spec.Argv = append(spec.Argv, form.Args...)
	out := capture.New(libctx.MaxToolResultHard)
	stderr := capture.New(libctx.MaxToolStderr)
	end, err := a.runner.Launcher.Run(ctx, spec, sandboxrun.Stdio{Stdout: out, Stderr: stderr, Started: a.started})
	res := Result{Status: "ok", Content: out.Text(), Truncated: out.Truncated(), Duration: end.Duration}
	if err != nil {
		res.Status = "error"
		var said string
		said, err = why(ctx, err)
		res.Content = join(res.Content, said)
		return res, err
	}
	res.ExitCode = &end.ExitCode
	if end.ExitCode != 0 {
		res.Status = "error"
		res.Content = join(res.Content, stderr.Text(), ended(end.ExitCode))
	}
	return res, nil
}

// json runs a tool that reads its arguments as an object and writes frames.
func (a *Admitted) json(ctx context.Context, spec sandbox.Spec) (Result, error) {
	stdin := append([]byte(nil), a.inner.Arguments...)
	stdout := &bounded{max: libctx.MaxToolOutput}
	stderr := capture.New(libctx.MaxToolStderr)
	end, err := a.runner.Launcher.Run(ctx, spec, sandboxrun.Stdio{
		Stdin: append(stdin, '\n'), Stdout: stdout, Stderr: stderr, Started: a.started,
	})
	res := Result{Status: "error", Duration: end.Duration}
	if errors.Is(err, errFlood) {
		res.Content = fmt.Sprintf("the tool wrote more than %d bytes", libctx.MaxToolOutput)
		return res, nil
	}
	if err != nil {
		res.Content, err = why(ctx, err)
		return res, err
	}
	got, err := toolwire.Read(stdout.b, a.call.Run)
	if err != nil {
		res.Content = join(err.Error(), stderr.Text(), ended(end.ExitCode))
		return res, nil
	}
	res.Content, res.Truncated, res.ExitCode = got.Text, got.Truncated, got.ExitCode
	switch {
	case got.Failed != nil:
		res.Content = join(got.Text, got.Failed.Message)
	case end.ExitCode != 0:
		// A command that a tool runs shares its sandbox. It may find the way to
		// its output and kill it, but not both write for it and let it end well.
		res.Content = join(got.Text, stderr.Text(), ended(end.ExitCode))
		res.ExitCode = &end.ExitCode
	default:
		res.Status = "ok"
	}
	return res, nil
}

// why is what a model may know of a call that did not come to its own end, and
// what of it ends the run: not that the tool's file is none that can be
// executed, which is the tool's own fault and names inside paths only.
func why(ctx context.Context, err error) (string, error) {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx).Error(), err
	case errdefs.Is(err, errdefs.NotFound), errdefs.Is(err, errdefs.Denied), errdefs.Is(err, errdefs.Invalid):
		return "the tool could not be started: " + strings.TrimPrefix(err.Error(), "sandbox: "), nil
	case errdefs.Is(err, errdefs.Unavailable):
		return "the tool could not be started", err
	}
	return "the tool was stopped", err
}

// ended is how a process ended, in words: a code over 128 is what a shell makes
// of a signal.
func ended(code int) string {
	text := fmt.Sprintf("exit code %d", code)
	if name := unix.SignalName(unix.Signal(code - 128)); code > 128 && name != "" {
		text += " (" + name + ")"
	}
	return text
}

// join puts texts below one another, leaving out empty ones.
func join(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	return b.String()
}

// bounded is a writer that refuses to hold more than max bytes.
type bounded struct {
	b   []byte
	max int
}

var errFlood = errdefs.New(errdefs.TooBig, "output over its limit")

func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > w.max {
		return 0, errFlood
	}
	w.b = append(w.b, p...)
	return len(p), nil
}
