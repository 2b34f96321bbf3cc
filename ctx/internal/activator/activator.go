// Package activator knows whether something listens for a tree's agents, waits
// for it, and brings it up in user mode: `ctxd serve`, started once however
// many clients want it at the same moment.
package activator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/spawn"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// How long things may take before they count as failed.
const (
	startDeadline  = 10 * time.Second // from the start of ctxd serve until it is ready
	socketDeadline = 5 * time.Second  // until a running activator listens for a new agent
)

// Activator brings up and watches the activator of one tree.
type Activator struct {
	Layout paths.Layout
	Exe    string   // the running ctx, absolute
	Env    []string // complete environment of a daemon
}

// Own reports whether this process may start an activator: the tree belongs to
// its own user.
func Own(l paths.Layout) bool {
	st, err := os.Stat(l.Root)
	if err != nil {
		return false
	}
	var sys unix.Stat_t
	return unix.Stat(l.Root, &sys) == nil && st.IsDir() && int(sys.Uid) == os.Geteuid()
}

// Running reports whether an activator holds the tree.
func Running(l paths.Layout) bool {
	f, err := os.OpenFile(l.ServeLock(), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// Start makes try succeed: it starts `ctxd serve` if none runs, waits until it
// listens for a, and tries again. The error of a daemon that could not start is
// errdefs.Unavailable and carries the last line of its log.
func (v *Activator) Start(ctx context.Context, a libctx.Agent, try func(context.Context) error) error {
	return v.start(ctx, func(ctx context.Context) error { return AwaitSocket(ctx, v.Layout, a) }, try)
}

// StartModels is Start for the model socket, which an activator has from its
// beginning on.
func (v *Activator) StartModels(ctx context.Context, try func(context.Context) error) error {
	return v.start(ctx, func(context.Context) error { return nil }, try)
}

func (v *Activator) start(ctx context.Context, await, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	unlock, err := v.startLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := try(ctx); !errdefs.Is(err, errdefs.Unavailable) {
		return err // somebody else was first
	}
	if !Running(v.Layout) {
		if err := v.serve(ctx); err != nil {
			return err
		}
	}
	if err := await(ctx); err != nil {
		return err
	}
	return try(ctx)
}

// startLock is held by the one client that starts the activator.
func (v *Activator) startLock(ctx context.Context) (unlock func(), err error) {
	if err := rundir.Ensure(v.Layout); err != nil {
		return nil, err
	}
	path := v.Layout.StartLock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "start lock: %w", err)
	}
	// flock knows no deadline, so it waits in a goroutine of its own. It ends at
	// the latest with the holder, who has a deadline too.
	got := make(chan error, 1)
	go func() {
		for {
			err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
			if !errors.Is(err, unix.EINTR) {
				got <- err
				return
			}
		}
	}()
	select {
	case err := <-got:
		if err != nil {
			f.Close()
			return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", path, err)
		}
		return func() { f.Close() }, nil
	case <-ctx.Done():
		go func() { <-got; f.Close() }()
		return nil, errdefs.New(errdefs.KindOf(ctx.Err()), "%s: another ctx is starting ctxd: %w", path, ctx.Err())
	}
}

func (v *Activator) serve(ctx context.Context) error {
	program, err := spawn.Find(v.Exe, v.Layout, "ctxd")
	if err != nil {
		return err
	}
	return spawn.Daemon{
		Program: program,
		Args:    []string{"--root", v.Layout.Root, "serve"},
		Env:     v.Env,
		Log:     v.Layout.ServeLog(),
		Runtime: v.Layout.Runtime,
	}.Start(ctx)
}

// AwaitSocket waits until the tree shows a socket for the agent, at most five
// seconds. It does not connect, so it starts no agent.
func AwaitSocket(ctx context.Context, l paths.Layout, a libctx.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, socketDeadline)
	defer cancel()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "watch %s: %w", l.Agents(), err)
	}
	defer w.Close()
	if err := w.Add(l.Agents()); err != nil {
		return errdefs.New(errdefs.KindOf(err), "watch %s: %w", l.Agents(), err)
	}
	for {
		// Through the link: a name that leads nowhere is from an earlier life.
		if st, err := os.Stat(l.AgentLink(a)); err == nil && st.Mode()&os.ModeSocket != 0 {
			return nil
		}
		select {
		case _, ok := <-w.Events:
			if !ok {
				return errdefs.New(errdefs.Internal, "watch %s ended", l.Agents())
			}
		case err := <-w.Errors:
			return errdefs.New(errdefs.IO, "watch %s: %w", l.Agents(), err)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return errdefs.New(errdefs.Unavailable, "agent %s: ctxd serve runs but does not listen for it", a).
				WithHint("its log may say why: %s", l.ServeLog())
		}
	}
}

// PID is the process of the activator that holds the tree, 0 if it can not be
// found.
func PID(l paths.Layout) int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	var lock unix.Stat_t
	if unix.Stat(l.ServeLock(), &lock) != nil {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err == nil && filepath.Base(words[0]) == "ctxd" && slices.Contains(words, "serve") && holds(pid, &lock) {
			return pid
		}
	}
	return 0
}

// holds reports whether a process has the file open.
func holds(pid int, file *unix.Stat_t) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, e.Name()), &st) == nil && st.Dev == file.Dev && st.Ino == file.Ino {
			return true
		}
	}
	return false
}
