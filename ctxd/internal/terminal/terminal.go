// Package terminal is the launcher of a terminal: the process outside of the
// sandbox, with the rights of the person who started it, that makes everything
// a terminal needs on the host, starts ctxterm in the agent's sandbox, and stays
// until it has ended (docs/reference/terminal.md, "Launching").
//
// The launcher owns, from its start to its end, the terminal's lock, its socket
// file and the link to it in the session. ctxterm gets the listening socket and
// the resource directory by descriptor. A start that fails leaves nothing behind.
package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// Config describes one terminal.
type Config struct {
	Tools   *toolrun.Runner // of the agent; its Launcher is not used
	Session libctx.Session
	Sandbox toolrun.Terminal

	Ctxterm    string        // host path of ctxterm
	Size       termwire.Size // at the start; the zero Size leaves it to ctxterm
	Clipboard  bool          // programs may set the clipboard of whoever is attached
	Emit       bool          // the agent's tool calls are to be shown in it
	Supervisor string        // who started this process, for the record

	Stderr io.Writer // what ctxterm says of itself
	Log    *log.Logger
	// Ready, if set, is called once, as soon as the terminal's socket answers. An
	// error of it ends the terminal and counts as a failed start.
	Ready func() error
}

// Run starts the terminal and returns when it has ended: the exit code of its
// program, 128 + n for one that signal n ended. When ctx is done the program is
// hung up and the terminal ends, at most libctx.TerminalGrace later; that is no
// error once it was ready.
//
// An error is a start that failed: errdefs.Exists if the session's terminal runs
// already, errdefs.Denied if the agent is not the caller's, and what the agent's
// files, the workspace, the mounts and the sandbox are refused with.
func Run(ctx context.Context, cfg Config) (exit int, err error) {
	l := &launcher{Config: cfg, layout: cfg.Tools.Layout}
	if err := l.look(); err != nil {
		return 0, err
	}
	defer func() {
		for i := len(l.undo) - 1; i >= 0; i-- {
			l.undo[i](err)
		}
	}()
	if err := l.prepare(); err != nil {
		return 0, err
	}
	return l.run(ctx)
}

// launcher is one Run.
type launcher struct {
	Config
	layout   paths.Layout
	agent    *view.Agent
	boxes    *sandboxrun.Launcher
	spec     sandbox.Spec
	view     *view.Live
	path     []string // of the agent, as last read
	listener *unixsock.Listener
	pass     []*os.File // what ctxterm gets: the socket, the resource directory
	place    terminal.Place

	undo []func(failed error) // in the order of what they undo
}

// look reads what the terminal is of, and whether it may be.
func (l *launcher) look() (err error) {
	if l.agent, err = view.Load(l.layout, l.Tools.Agent); err != nil {
		return err
	}
	if !l.agent.Owner.IsSelf() {
		return errdefs.New(errdefs.Denied, "agent %s: belongs to uid %d", l.Tools.Agent, l.agent.Owner.UID).
			WithHint("start its terminal as that user")
	}
	l.place = terminal.Place{Layout: l.layout, Owner: l.agent.Owner, Agent: l.Tools.Agent, Session: l.Session}
	for name, path := range map[string]string{"ctxterm": l.Ctxterm, "tsh": l.Tools.Tsh} {
		if path == "" {
			return errdefs.New(errdefs.Unavailable, "%s is not installed", name).WithHint("install it beside ctxd")
		}
	}
	return nil
}

// prepare makes what is on the host, each thing with what undoes it.
func (l *launcher) prepare() (err error) {
	lock, err := l.place.Own()
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func(error) { lock.Release() })
	if err := l.outlive(); err != nil {
		return err
	}

	made, err := makeDirs(l.place)
	l.undo = append(l.undo, func(failed error) {
		if failed != nil {
			made.remove()
		}
	})
	if err != nil {
		return err
	}

	if l.spec, l.view, err = l.Tools.TerminalSpec(l.agent, l.Sandbox); err != nil {
		return err
	}
	l.undo = append(l.undo, func(error) { l.view.Release() })
	l.spec.Ctxterm = l.Ctxterm
	l.spec.Env = l.agent.TerminalEnviron()
	l.spec.Argv = l.command()

	if l.boxes, err = sandboxrun.New(sandboxrun.Config{Entry: l.Tools.Ctxtool, Log: l.Log}); err != nil {
		return err
	}
	l.undo = append(l.undo, func(error) { l.boxes.Close() })

	if l.listener, err = listen(l.layout.TerminalSocket(l.Tools.Agent, l.Session)); err != nil {
		return err
	}
	l.undo = append(l.undo, func(error) {
		l.listener.Close()
		for _, f := range l.pass {
			f.Close()
		}
	})
	socket, err := l.listener.File()
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "socket: %w", err)
	}
	l.pass = append(l.pass, socket)
	if err := l.resource(); err != nil {
		return err
	}
	unlink, err := link(l.place)
	if err != nil {
		return err
	}
	l.undo = append(l.undo, func(error) { unlink() })
	return nil
}

// program is what runs on the terminal.
var program = []string{sandbox.InTsh}

// command is what runs in the sandbox.
func (l *launcher) command() []string {
	argv := []string{sandbox.InCtxterm, "--listen", "fd:3", "--dir", "fd:4"}
	if l.Size != (termwire.Size{}) {
		argv = append(argv, "--size", l.Size.String())
	}
	if l.Clipboard {
		argv = append(argv, "--clipboard")
	}
	return append(append(argv, "--"), program...)
}

// resource makes the resource directory and gives it to ctxterm. After a failed
// start it is gone, or says why if it was there before.
func (l *launcher) resource() error {
	existed := false
	if before, err := l.place.Open(); err == nil {
		before.Close()
		existed = true
	}
	meta := terminal.Meta{
		Cwd: l.spec.Cwd, Command: program, Workspace: l.spec.Workspace.Dir,
		Socket: l.layout.TerminalSocket(l.Tools.Agent, l.Session), CreatedAt: time.Now().Unix(),
		Supervisor: l.Supervisor, Emit: l.Emit,
	}
	size := l.Size
	if size == (termwire.Size{}) {
		size = termwire.DefaultSize // that of ctxterm
	}
	meta.Size = size.String()
	l.undo = append(l.undo, func(failed error) {
		switch {
		case failed == nil:
		case existed:
			l.settle(terminal.Error, func(m *terminal.Meta) { m.Error = failed.Error() })
		default:
			if err := l.place.Remove(); err != nil {
				l.Log.Warn("remove the resource", "why", err.Error())
			}
		}
	})
	dir, err := l.place.Create(meta)
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, err := unix.FcntlInt(uintptr(dir.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "resource directory: %w", err)
	}
	l.pass = append(l.pass, os.NewFile(uintptr(fd), dir.Path()))
	return nil
}

// settle writes a state. That it can not be written is no reason to end a
// terminal, or to keep one: what is true is the supervisor's to say.
func (l *launcher) settle(s terminal.State, with func(*terminal.Meta)) {
	if err := l.place.SetState(s, with); err != nil {
		l.Log.Warn("terminal state", "state", string(s), "why", err.Error())
	}
}

// ended is how what ran in the sandbox came to its end.
type ended struct {
	sandboxrun.Result
	err error
}

// run runs ctxterm and sees the terminal through.
func (l *launcher) run(ctx context.Context) (int, error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	said := &words{to: l.Stderr, kept: capture.New(maxSaid)}
	end := make(chan ended, 1)
	go func() {
		r, err := l.boxes.Run(within, l.spec, sandboxrun.Stdio{
			Stdout: said, Stderr: said, Pass: l.pass, Grace: libctx.TerminalGrace,
		})
		end <- ended{r, err}
	}()
	// failed ends what was started and says why there is no terminal.
	failed := func(why error) error {
		cancel(why)
		e := <-end
		switch {
		case e.err == nil:
			return errdefs.New(errdefs.Unavailable, "terminal: ctxterm ended with code %d before it answered%s", e.ExitCode, said.last())
		case errors.Is(e.err, why):
			return errdefs.New(errdefs.KindOf(why), "terminal: %w%s", why, said.last())
		}
		return e.err
	}
	answered := make(chan error, 1)
	go func() { answered <- ask(within, l.layout.TerminalSocket(l.Tools.Agent, l.Session)) }()
	select {
	case e := <-end:
		end <- e
		return 0, failed(errEnded)
	case err := <-answered:
		if err != nil {
			return 0, failed(err)
		}
	}
	l.settle(terminal.Running, nil)
	if l.Ready != nil {
		if err := l.Ready(); err != nil {
			return 0, failed(err)
		}
	}
	l.Log.Info("terminal", "id", l.place.ID(), "pid", os.Getpid())
	// What the start took is not needed again, and this process stays long.
	debug.FreeOSMemory()
	var following sync.WaitGroup
	following.Go(func() { l.follow(within) })
	e := <-end
	cancel(nil)
	following.Wait()
	return l.over(ctx, e)
}

// over settles what is left of a terminal that was ready.
func (l *launcher) over(ctx context.Context, e ended) (int, error) {
	if e.err != nil && ctx.Err() == nil {
		l.settle(terminal.Error, func(m *terminal.Meta) { m.Error = e.err.Error() })
		l.Log.Error("terminal", "why", e.err.Error())
	} else if e.ExitCode > 128 && !l.exitRecorded() {
		// The program's own end is in the record, also that by a signal.
		why := fmt.Sprintf("ctxterm, or its sandbox, was ended by signal %d", e.ExitCode-128)
		l.settle(terminal.Error, func(m *terminal.Meta) { m.ExitCode, m.Error = &e.ExitCode, why })
		l.Log.Error("terminal", "why", why)
	} else {
		l.settle(terminal.Exited, func(m *terminal.Meta) { m.ExitCode = &e.ExitCode })
	}
	l.Log.Info("terminal ended", "id", l.place.ID(), "exit", e.ExitCode, "duration", e.Duration)
	changed, err := l.Tools.Changed(l.agent, l.spec)
	if err != nil {
		l.Log.Warn("workspace", "why", err.Error())
	}
	for _, path := range changed {
		l.Log.Warn("protected path changed while the terminal ran", "path", path)
	}
	return e.ExitCode, nil
}

// errEnded is the cause of a failed start that has another reason.
var errEnded = errors.New("it has ended")

// exitRecorded reports whether the record ends with the end of the program.
func (l *launcher) exitRecorded() bool {
	dir, err := l.place.Open()
	if err != nil {
		return false
	}
	defer dir.Close()
	fd, err := unix.Openat(dir.FD(), terminal.EventFile(0), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), terminal.EventFile(0))
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false
	}
	tail := make([]byte, min(end, 512)) // such a line is shorter
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil {
		return false
	}
	lines := bytes.Split(bytes.TrimSuffix(tail, []byte("\n")), []byte("\n"))
	e, err := terminal.ParseEvent(lines[len(lines)-1])
	return err == nil && e.Type == terminal.EventExit
}
