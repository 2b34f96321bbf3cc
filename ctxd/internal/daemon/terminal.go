package daemon

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/terminal"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/rundir"
	resource "cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
)

// TerminalOptions of the launcher of a terminal, as its command line has them.
type TerminalOptions struct {
	Agent, Session    string
	Workspace         string   // "" is the current directory
	ReadOnly          bool     // all of it
	Mounts            []string // SRC:DST:ro|rw
	Cwd, Size         string
	Clipboard, NoEmit bool
	Supervisor        string
	Report            string // path of a datagram socket that is told how the start went; "" tells nobody
}

// Terminal launches a terminal and returns its program's exit code when it has
// ended (package terminal). Whoever waits at Report is told once, of a failed
// start too, and a start that nobody waits for any more is given up.
func Terminal(ctx context.Context, o Options, t TerminalOptions) (exit int, err error) {
	// The end of a login, if it reaches us, is an end like others. A reader of
	// our log that goes away is none.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	told := t.Report == ""
	tell := func(r resource.Report) error {
		if told {
			return nil
		}
		told = true
		return terminal.Tell(t.Report, r)
	}
	defer func() {
		if err != nil {
			tell(resource.Failed(err)) // whoever is gone need not know
		}
	}()
	cfg, err := t.config(o)
	if err != nil {
		return 0, err
	}
	cfg.Ready = func() error { return tell(resource.Report{Ready: true, PID: os.Getpid()}) }
	return terminal.Run(ctx, cfg)
}

// config prepares the process, as prepare does, and reads the options.
func (t TerminalOptions) config(o Options) (cfg terminal.Config, err error) {
	logger, layout, err := find(o)
	if err != nil {
		return cfg, err
	}
	layout = rundir.For(layout, uint32(os.Geteuid()))
	if err := rundir.Ensure(layout); err != nil {
		return cfg, err
	}
	agent, err := libctx.ParseAgent(t.Agent)
	if err != nil {
		return cfg, err
	}
	cfg = terminal.Config{
		Tools: &toolrun.Runner{
			Layout: layout, Agent: agent, Ctxtool: config.Program("ctxtool"), Tsh: config.Program("tsh"),
			Programs: config.Programs(),
		},
		Sandbox: toolrun.Terminal{Workspace: t.Workspace, Frozen: t.ReadOnly, Cwd: t.Cwd},
		Ctxterm: config.Program("ctxterm"), Clipboard: t.Clipboard, Emit: !t.NoEmit, Supervisor: t.Supervisor,
		Stderr: os.Stderr, Log: logger.With("agent", t.Agent).With("session", t.Session),
	}
	if cfg.Session, err = libctx.ParseSession(t.Session); err != nil {
		return cfg, err
	}
	if t.Size != "" {
		if cfg.Size, err = termwire.ParseSize(t.Size); err != nil {
			return cfg, err
		}
	}
	for _, m := range t.Mounts {
		line, err := mount.ParseFlag(m)
		if err != nil {
			return cfg, errdefs.New(errdefs.KindOf(err), "--mount: %w", err)
		}
		cfg.Sandbox.Mounts = append(cfg.Sandbox.Mounts, line)
	}
	if cfg.Sandbox.Workspace, err = filepath.Abs(t.Workspace); err != nil {
		return cfg, errdefs.New(errdefs.KindOf(err), "current directory: %w", err).WithHint("name one with --workspace")
	}
	return cfg, nil
}
