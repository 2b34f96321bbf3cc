// Package capsock serves the capability sockets of runs: what a program inside a
// run may ask of the daemon that carries the run out. There is no secret to know.
// The kernel says which process has connected, and a capability hears it if it
// belongs to the agent's owner and is, or descends from, the first process of a
// sandbox that was registered for this very run before anything in it began.
//
// A Keeper serves one agent. Open gives a run its Capability, Register adds the
// sandboxes, Close ends it: what was asked before is done or refused by then, and
// nothing is done later. docs/reference/control-socket.md has the rules.
package capsock

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Config is what a Keeper needs to know.
type Config struct {
	Layout paths.Layout
	Agent  libctx.Agent
	Owner  asuser.Identity // whom the agent belongs to: nobody else is heard, root neither
	Log    *log.Logger
}

// Keeper makes the capabilities of one agent's runs. Its methods may be called
// from any goroutine.
type Keeper struct {
	cfg Config

	mu     sync.Mutex
	idle   *door // of no run at the moment
	closed bool
}

// tool is the tool whose standing decides about updates.
const tool libctx.Tool = "agent.update"

// New returns a Keeper. Whoever makes one is the agent's only server: sockets that
// another one left behind are removed. The caller closes it after the last
// capability.
func New(cfg Config) *Keeper {
	k := &Keeper{cfg: cfg}
	k.sweep()
	return k
}

// sweep removes the sockets of this agent on which nobody listens.
func (k *Keeper) sweep() {
	dir := k.cfg.Layout.Capabilities(k.cfg.Agent)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); dead(path) {
			os.Remove(path)
		}
	}
}

// dead reports whether nobody listens on a socket.
func dead(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return errors.Is(unix.Connect(fd, &unix.SockaddrUnix{Name: path}), unix.ECONNREFUSED)
}

// Open gives a run its capability, and a socket of its own. Record makes what was
// done durable in the run's session; it is not called after Close has returned. The
// caller closes the capability when the run is over, after the last of its sandboxes.
func (k *Keeper) Open(session libctx.Session, run libctx.Run, record func(...wire.Frame) error) (*Capability, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errdefs.New(errdefs.Unavailable, "capability socket: the server ends")
	}
	d := k.idle
	k.idle = nil
	if d == nil {
		var err error
		if d, err = k.open(); err != nil {
			return nil, err
		}
	}
	c := &Capability{
		keeper: k, door: d, session: session, run: run, record: record, roots: map[int]root{}, used: map[string]bool{},
	}
	d.lead(c)
	return c, nil
}

// open makes a socket under a name nobody knows.
func (k *Keeper) open() (*door, error) {
	if err := rundir.EnsureCapabilities(k.cfg.Layout, k.cfg.Agent); err != nil {
		return nil, err
	}
	var random [12]byte
	rand.Read(random[:])
	path := filepath.Join(k.cfg.Layout.Capabilities(k.cfg.Agent), hex.EncodeToString(random[:])+".sock")
	l, err := unixsock.ListenFresh(path, unixsock.Options{Perm: 0o600, UID: int(k.cfg.Owner.UID), GID: int(k.cfg.Owner.GID)})
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "capability socket: %w", err)
	}
	return newDoor(k, path, l), nil
}

// giveBack takes the socket of a run that is over. One is kept for the next run,
// since a sandbox that was prepared shows it; of that run's processes none is left
// that could come in by it.
func (k *Keeper) giveBack(d *door) {
	k.mu.Lock()
	keep := !k.closed && k.idle == nil
	if keep {
		k.idle = d
	}
	k.mu.Unlock()
	if !keep {
		d.close()
	}
}

// Close ends the socket that is kept. Capabilities that are still open go on, and
// their sockets end with them.
func (k *Keeper) Close() {
	k.mu.Lock()
	d := k.idle
	k.idle, k.closed = nil, true
	k.mu.Unlock()
	if d != nil {
		d.close()
	}
}

// mayUpdate asks, with the agent's and the tool's files of this moment, whether a
// sandbox of the run may change the agent's prompt. Any may if the tool
// agent.update stands as it would for a call. If a person has to allow each call of
// it, or hooks look at it, only the sandbox of a call may that went all that way.
func (k *Keeper) mayUpdate(r root) error {
	a, err := view.Load(k.cfg.Layout, k.cfg.Agent)
	if err != nil {
		return errdefs.New(errdefs.Denied, "%w", err)
	}
	t, err := a.Lookup(k.cfg.Layout, tool)
	if err != nil {
		return errdefs.New(errdefs.Denied, "%w", err)
	}
	defer t.Close()
	if v := admit.Standing(a.Facts(), t.Tool); !v.OK {
		return errdefs.New(errdefs.Denied, "%s: %s", v.Stage, v.Reason)
	}
	if r.tool == tool {
		return nil
	}
	if admit.Questioned(a.Facts(), t.Tool) {
		return errdefs.New(errdefs.Denied, "a person has to allow it: only a call of %s that was allowed may do it", tool)
	}
	hooks, err := a.Hooks(k.cfg.Layout, t.Path, view.Before)
	for _, h := range hooks {
		h.Close()
	}
	if len(hooks) > 0 || err != nil {
		return errdefs.New(errdefs.Denied, "hooks look at it: only a call of %s that they let pass may do it", tool)
	}
	return nil
}
