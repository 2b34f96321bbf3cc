// Package hook runs the executables that people put beside an agent and its tools
// to look at calls: those before a call, each of which may refuse it and none of
// which can allow anything, and those after it (docs/reference/hooks.md).
//
// A hook is a copy of the file that was opened and believed, in memory that nobody
// can write, and runs in a sandbox of its own. It is nowhere in the file system that
// it or anything of the agent sees.
package hook

import (
	"context"
	"fmt"
	"os"
	"time"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/changes"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Runner runs the hooks of one agent. It is calls.Hooks; its methods may be called
// from any goroutine.
type Runner struct {
	tools    *toolrun.Runner
	each     time.Duration // that one hook may take
	together time.Duration // that those before a call, or after it, may take
}

// New makes the runner of hooks beside that of the agent's tools.
func New(tools *toolrun.Runner) *Runner {
	return &Runner{tools, libctx.HookTimeout, libctx.HooksTimeout}
}

// Looks implements calls.Hooks.
func (r *Runner) Looks(agent *view.Agent, tool string) bool {
	hooks, err := agent.Hooks(r.tools.Layout, tool, view.Before)
	for _, h := range hooks {
		h.Close()
	}
	return err != nil || len(hooks) > 0
}

// Pre implements calls.Hooks. The first hook that does not end well refuses the
// call, and those behind it are not asked. So does whatever keeps the hooks from
// being found and run.
func (r *Runner) Pre(ctx context.Context, c calls.HookCall) (looked bool, err error) {
	hooks, err := c.Agent.Hooks(r.tools.Layout, c.Intent.Path, view.Before)
	if err != nil {
		return true, err
	}
	if len(hooks) == 0 {
		return false, nil
	}
	r.run(ctx, c, view.Before, "", hooks, func(h *view.Hook, no error) (more bool) {
		err = fmt.Errorf("%s: %w", h.Name, no)
		return false
	})
	return true, err
}

// Post implements calls.Hooks. Each hook is told, whether or not one before it
// failed.
func (r *Runner) Post(ctx context.Context, c calls.HookCall, status string) (failed []*wire.HookFailed) {
	hooks, err := c.Agent.Hooks(r.tools.Layout, c.Intent.Path, view.After)
	if err != nil {
		return []*wire.HookFailed{{Hook: string(view.HooksDir) + "/" + string(view.After), Reason: line(err.Error())}}
	}
	if len(hooks) == 0 {
		return nil
	}
	c.Call.Watch.Before(changes.Reach{Anything: true})
	r.run(ctx, c, view.After, status, hooks, func(h *view.Hook, no error) (more bool) {
		failed = append(failed, &wire.HookFailed{Hook: h.Name, Reason: line(no.Error())})
		return true
	})
	return failed
}

// run runs hooks one after the other and closes them. Of each that fails it tells,
// and goes on if that says so.
func (r *Runner) run(ctx context.Context, c calls.HookCall, when view.When, status string, hooks []*view.Hook, failed func(*view.Hook, error) (more bool)) {
	defer func() {
		for _, h := range hooks {
			h.Close()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, r.together, errdefs.New(errdefs.Timeout, "the hooks of the call ran longer than %s", r.together))
	defer cancel()
	told, err := tell(c, when, status)
	var spec sandbox.Spec
	release := func() {}
	if err == nil {
		spec, release, err = r.tools.HookSpec(c.Agent, c.Call, when)
	}
	defer release()
	for _, h := range hooks {
		no := err
		if no == nil {
			no = r.one(ctx, spec, h, told)
		}
		if no != nil && !failed(h, no) {
			return
		}
	}
}

// program is where a hook has its own copy.
const program = "/proc/self/fd/3"

// one runs a hook to its end. Nil is exit code 0, in time, and without too many
// words.
func (r *Runner) one(ctx context.Context, spec sandbox.Spec, h *view.Hook, told []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	copied, err := sealed(h)
	if err != nil {
		return err
	}
	defer copied.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, r.each, errdefs.New(errdefs.Timeout, "it ran longer than %s", r.each))
	defer cancel()
	spec.Argv = []string{program}
	words := &output{max: libctx.MaxHookOutput}
	end, err := r.tools.Launcher.Run(ctx, spec, sandboxrun.Stdio{
		Stdin: told, Stdout: words, Stderr: words, Pass: []*os.File{copied},
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case end.ExitCode != 0:
		return errdefs.New(errdefs.Denied, "exit code %d%s", end.ExitCode, words.said())
	}
	return nil
}
