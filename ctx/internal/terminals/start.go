package terminals

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"cortexfs.org/ctx/internal/attach"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/instances"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/ctx/internal/spawn"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// StartOptions of a terminal, as the command line has them.
type StartOptions struct {
	Session    string
	Workspace  string // "" is the caller's directory
	ReadOnly   bool
	Mounts     []string // SRC:DST:ro|rw; SRC may be relative
	Cwd        string
	Supervisor string
	NoEmit     bool
	Clipboard  bool
}

// Started is what `ctx agent start` prints.
type Started struct {
	Terminal   string         `json:"terminal"`
	Agent      libctx.Agent   `json:"agent"`
	Session    libctx.Session `json:"session"`
	Supervisor string         `json:"supervisor"`
	Unit       string         `json:"unit"`
	PID        int            `json:"pid"`
	Socket     string         `json:"socket"`
	Workspace  string         `json:"workspace"`
}

// Start starts the terminal of a session and prints what was started. One that
// runs already is errdefs.Exists. After any error nothing of the start is left.
func Start(ctx context.Context, from *caller.Caller, a libctx.Agent, o StartOptions) error {
	s, err := prepare(ctx, from, a, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	interrupts, stop := from.Interrupts()
	defer stop()
	// A start that is ended in another way leaves nothing either.
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(ends)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-interrupts:
			cancel(caller.ErrInterrupt)
		case sig := <-ends:
			cancel(errdefs.New(errdefs.Cancelled, "ended by a signal: %v", sig))
		case <-over:
		}
	}()
	if err := s.launch(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return s.tell()
}

// start is one start of a terminal.
type start struct {
	from  *caller.Caller
	place terminal.Place
	by    supervise.Supervisor
	argv  []string
	dir   string // the workspace
	known bool   // the resource was there before

	instance supervise.Instance
}

// prepare finds out everything that can be wrong before anything is started.
func prepare(ctx context.Context, from *caller.Caller, a libctx.Agent, o StartOptions) (*start, error) {
	s := &start{from: from}
	var err error
	if s.place, err = Of(from, a, o.Session); err != nil {
		return nil, err
	}
	if !s.place.Owner.IsSelf() {
		return nil, errdefs.New(errdefs.Denied, "agent %s: belongs to uid %d, whose terminals only that user starts", a, s.place.Owner.UID)
	}
	if s.dir, err = runs.Directory(from, o.Workspace); err != nil {
		return nil, err
	}
	if s.by, err = supervise.New(ctx, o.Supervisor, from.Layout, s.place.Owner.UID); err != nil {
		return nil, err
	}
	if s.argv, err = s.command(o); err != nil {
		return nil, err
	}
	switch i, err := instances.Find(ctx, from, s.place.Owner.UID, a, s.place.Session); {
	case err == nil:
		return nil, errdefs.New(errdefs.Exists, "terminal %s: runs already, as process %d", s.place, i.PID).
			WithHint("join it: ctx agent attach%s %s", sessionFlag(s.place.Session), a)
	case !errdefs.Is(err, errdefs.NotFound):
		return nil, err
	}
	if _, err := s.place.Load(); !errdefs.Is(err, errdefs.NotFound) {
		s.known = true
	}
	return s, rundir.Ensure(rundir.For(from.Layout, s.place.Owner.UID))
}

// command is the launcher with its words, but for the report.
func (s *start) command(o StartOptions) ([]string, error) {
	ctxd, err := spawn.Find(s.from.Config.Exe, s.from.Layout, "ctxd")
	if err != nil {
		return nil, err
	}
	argv := []string{ctxd, "--root", s.from.Layout.Root, "terminal", "--session", string(s.place.Session),
		"--workspace", s.dir, "--supervisor", s.by.Name()}
	for _, m := range o.Mounts {
		if m, err = s.mount(m); err != nil {
			return nil, err
		}
		argv = append(argv, "--mount", m)
	}
	if o.Cwd != "" {
		if !filepath.IsAbs(o.Cwd) {
			return nil, errdefs.New(errdefs.Invalid, "flag --cwd: %q is not a path in the sandbox, such as /workspace/sub", o.Cwd)
		}
		argv = append(argv, "--cwd", o.Cwd)
	}
	for _, flag := range []struct {
		name string
		on   bool
	}{{"--ro", o.ReadOnly}, {"--no-emit", o.NoEmit}, {"--clipboard", o.Clipboard}} {
		if flag.on {
			argv = append(argv, flag.name)
		}
	}
	for _, f := range []any{s.from.Out, s.from.In} {
		if f, ok := f.(*os.File); ok {
			if size, ok := attach.SizeOf(f); ok {
				argv = append(argv, "--size", size.String())
				break
			}
		}
	}
	return argv, nil
}

// mount makes the source of a mount absolute and checks its form.
func (s *start) mount(m string) (string, error) {
	full := m
	if m != "" && !filepath.IsAbs(m) {
		full = filepath.Join(s.from.Config.Cwd, m)
	}
	if _, err := mount.ParseFlag(full); err != nil {
		if _, as := mount.ParseFlag(m); as != nil && m != full && strings.Count(m, ":") < 2 {
			err = as // what was typed has no form at all
		}
		return "", errdefs.New(errdefs.Invalid, "flag --mount: %w", err)
	}
	return full, nil
}

// launch starts the launcher, waits until the terminal answers, and hands its
// receipt to the agent. After an error it is stopped again.
func (s *start) launch(ctx context.Context) (err error) {
	box, err := openMailbox(s.from.Layout.Runtime)
	if err != nil {
		return err
	}
	defer box.close()
	a, name := s.place.Agent, s.place.Session
	log := s.from.Layout.TerminalLog(a, name)
	// Each start has its own; that of the last one comes back if this one fails.
	before := log + ".before"
	if err := os.Rename(log, before); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errdefs.New(errdefs.KindOf(err), "log: %w", err)
	}
	defer func() {
		if err == nil {
			os.Remove(before)
			return
		}
		os.Remove(log)
		os.Rename(before, log) // there may have been none
	}()
	s.instance, err = s.by.Start(ctx, supervise.Spec{
		Unit: supervise.Unit(s.from.Layout, a, name), Description: "CortexFS terminal of " + s.place.String(),
		Argv: append(s.argv, "--report", box.path(), string(a)), Env: s.from.Config.Daemon, Log: log,
	})
	if err != nil {
		return err
	}
	if err := s.await(ctx, box, log); err != nil {
		if s.stop(ctx) {
			s.forget()
		}
		return err
	}
	if err := s.receipt(ctx); err != nil {
		s.stop(ctx)
		s.forget()
		return err
	}
	return nil
}

// forget removes the resource that this start made.
func (s *start) forget() {
	if s.known {
		return
	}
	if err := s.place.Remove(); err != nil {
		s.from.Warn(err.Error())
	}
}

// stop ends what was started and waits until it is gone. It reports whether the
// terminal was its launcher's to the end, which then could not tidy up itself.
func (s *start) stop(ctx context.Context) (left bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*libctx.TerminalStop)
	defer cancel()
	err := s.by.Stop(ctx, s.instance)
	if err != nil && !errdefs.Is(err, errdefs.NotFound) && !errors.Is(err, supervise.ErrStale) {
		s.from.Warn(err.Error())
		return false
	}
	p := s.place
	p.Layout = rundir.For(p.Layout, p.Owner.UID)
	left, err = p.Clear(terminal.Launch{
		PID: s.instance.PID, Start: s.instance.Start, Boot: s.instance.Boot,
		Socket: terminal.Socket{Path: p.Layout.TerminalSocket(p.Agent, p.Session)},
	})
	if err != nil {
		s.from.Warn(err.Error())
	}
	return left
}

// receipt reads back what the kernel and the supervisor know of the terminal and
// hands it to the agent, which proves it.
func (s *start) receipt(ctx context.Context) error {
	text, err := s.facts(ctx)
	if err != nil {
		return err
	}
	conn, err := s.from.Dial(ctx, s.place.Agent)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, f, err := conn.Ask(&wire.Receipt{Session: s.place.Session, Receipt: text})
	if err != nil {
		return err
	}
	if _, ok := f.(*wire.Accepted); !ok {
		return errdefs.New(errdefs.Protocol, "agent %s: answered receipt with %s", s.place.Agent, f.Header().Type)
	}
	return nil
}

func (s *start) facts(ctx context.Context) ([]byte, error) {
	now, err := s.by.Find(ctx, s.instance.Unit)
	if err != nil {
		return nil, err
	}
	if now.PID != s.instance.PID || now.Start != s.instance.Start {
		return nil, errdefs.New(errdefs.Internal, "%s: is another process than was started", now.Unit)
	}
	as, err := procid.Identity(now.PID)
	if err != nil {
		return nil, err
	}
	path := s.from.Layout.TerminalSocket(s.place.Agent, s.place.Session)
	var socket, control unix.Stat_t
	if err := unix.Lstat(path, &socket); err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "socket %s: %w", path, err)
	}
	if err := unix.Stat(s.from.Layout.Control(s.place.Agent), &control); err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "agent %s: %w", s.place.Agent, err)
	}
	return terminal.Receipt{
		Version: terminal.ReceiptVersion,
		Control: terminal.Object{Dev: control.Dev, Ino: control.Ino},
		Terminal: terminal.Launch{
			Session: s.place.Session, Supervisor: now.Supervisor, Unit: now.Unit, Invocation: now.Invocation,
			PID: now.PID, Start: now.Start, Boot: now.Boot,
			Socket:   terminal.Socket{Path: path, Dev: socket.Dev, Ino: socket.Ino},
			Identity: terminal.Identity{UID: as.UID, GID: as.GID, Groups: as.Groups},
		},
	}.Text()
}

// tell prints what was started and what to do next.
func (s *start) tell() error {
	a, name := s.place.Agent, s.place.Session
	err := s.from.Record(Started{
		Terminal: s.place.ID(), Agent: a, Session: name, Supervisor: s.instance.Supervisor, Unit: s.instance.Unit,
		PID: s.instance.PID, Socket: s.from.Layout.TerminalSocket(a, name), Workspace: s.dir,
	}, "terminal", s.place.ID(), "workspace", s.dir, "supervisor", s.instance.Supervisor, "unit", s.instance.Unit, "pid", pid(s.instance.PID))
	flag := sessionFlag(name)
	s.from.Note("watch it: ctx agent watch" + flag + " " + string(a))
	s.from.Note("join it:  ctx agent attach" + flag + " " + string(a))
	switch {
	case s.instance.Supervisor == supervise.Direct:
		s.from.Note("it lives until it is stopped, or the machine is; where logind kills what users leave behind, until you log out")
	case !supervise.Linger(s.place.Owner.UID):
		s.from.Note("it lives until you log out everywhere, as everything that your systemd manager runs; to keep it beyond that, once: loginctl enable-linger")
	}
	return err
}
