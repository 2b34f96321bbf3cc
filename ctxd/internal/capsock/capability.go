package capsock

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

// Capability is what the processes of one run may ask for. Its methods may be
// called from any goroutine.
type Capability struct {
	keeper  *Keeper
	door    *door
	session libctx.Session
	run     libctx.Run
	record  func(...wire.Frame) error

	mu    sync.Mutex
	over  bool
	roots map[int]root // by pid
	used  map[string]bool
}

// root is the first process of a sandbox of the run.
type root struct {
	id     procid.ID
	handle *procid.Handle
	tool   libctx.Tool // whose call the sandbox is for
}

// Path is the socket on the host, for the sandboxes of the run.
func (c *Capability) Path() string { return c.door.path }

// Register lets the processes of a sandbox in, whose first one this is: of a call
// of that tool, or, "", of the agent itself. It must come before anything of the
// sandbox's program runs. A process that is gone is errdefs.Unavailable, a run that
// is over errdefs.Cancelled.
func (c *Capability) Register(id procid.ID, of libctx.Tool) error {
	h, err := procid.Open(id.PID)
	if err != nil {
		return errdefs.New(errdefs.Unavailable, "capability socket: %w", err)
	}
	if now, err := procid.Of(id.PID); err != nil || now != id || h.Ended() {
		h.Close()
		return errdefs.New(errdefs.Unavailable, "capability socket: process %d is gone", id.PID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		h.Close()
		return errOver
	}
	for pid, r := range c.roots { // those that are over let nobody in any more
		if pid == id.PID || r.handle.Ended() {
			r.handle.Close()
			delete(c.roots, pid)
		}
	}
	c.roots[id.PID] = root{id, h, of}
	return nil
}

// Close ends the capability. Requests that are being carried out are done when it
// returns, and connections that are open have their refusal. Closing twice is fine.
func (c *Capability) Close() {
	c.mu.Lock()
	was := c.over
	c.over = true
	for _, r := range c.roots {
		r.handle.Close()
	}
	c.roots = nil
	c.mu.Unlock()
	if was {
		return
	}
	c.door.lead(nil)
	c.keeper.giveBack(c.door)
}

var (
	errOver     = errdefs.New(errdefs.Cancelled, "the run is over")
	errStranger = errdefs.New(errdefs.Denied, "not permitted")
)

// caller is a process at the other end of a connection.
type caller struct {
	peer   peercred.Peer
	handle *procid.Handle // of the process that connected
}

// admit finds the sandbox of the run that the caller is in. Called with mu held.
// Everything else is refused, without a word about why to the caller.
func (c *Capability) admit(who caller) (root, error) {
	if who.peer.UID != c.keeper.cfg.Owner.UID && !fault.Off("capsock:owner") {
		return root{}, errdefs.New(errdefs.Denied, "the process is of uid %d", who.peer.UID)
	}
	if c.over {
		return root{}, errOver
	}
	if fault.Off("capsock:descendant") {
		return root{}, nil
	}
	at, err := procid.Descends(int(who.peer.PID), libctx.MaxAncestry, func(id procid.ID) bool {
		r, ok := c.roots[id.PID]
		return ok && r.id == id
	})
	if err != nil {
		return root{}, err
	}
	r := c.roots[at.PID]
	switch {
	case r.handle.Ended():
		return root{}, errdefs.New(errdefs.Denied, "the sandbox is over")
	case who.handle.Ended(): // so the number was its own all the while
		return root{}, errdefs.New(errdefs.Denied, "the process is gone")
	}
	return r, nil
}

// knows is admit for somebody who has asked for nothing yet.
func (c *Capability) knows(who caller) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.admit(who)
	return err
}

// ended reports whether the run is over.
func (c *Capability) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// do carries out a request of a caller, who is looked at once more: it is still
// there. One request of a run is carried out at a time.
func (c *Capability) do(who caller, q capwire.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, err := c.admit(who)
	if err != nil {
		return err
	}
	if (q.Agent != c.keeper.cfg.Agent || q.Session != c.session || q.Run != c.run) && !fault.Off("capsock:identity") {
		return errdefs.New(errdefs.Invalid, "agent, session and run are not those of this socket")
	}
	if q.Op == capwire.Ping {
		return nil
	}
	if err := c.keeper.mayUpdate(from); err != nil {
		return err
	}
	if err := c.use(q.ID); err != nil {
		return err
	}
	if err := tree.SetPrompt(c.keeper.cfg.Layout, c.keeper.cfg.Agent, q.Control, *q.Content); err != nil {
		return err
	}
	done := &wire.PromptChanged{
		Head: wire.Head{Type: "prompt_changed"}, Control: q.Control, Size: len(*q.Content),
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(*q.Content))), RequestID: q.ID,
	}
	c.keeper.cfg.Log.Info("prompt changed by its agent", "session", c.session, "run", c.run, "control", q.Control,
		"bytes", done.Size, "digest", done.Digest, "request", q.ID)
	if err := c.record(done); err != nil { // it is done all the same
		c.keeper.cfg.Log.Warn("prompt changed, not recorded", "session", c.session, "run", c.run, "why", err.Error())
	}
	return nil
}

// use uses up a request id, whatever comes of the request.
func (c *Capability) use(id string) error {
	switch {
	case c.used[id] && !fault.Off("capsock:replay"):
		return errdefs.New(errdefs.Already, "request id %s was used before", id)
	case len(c.used) >= libctx.MaxCapRequests:
		return errdefs.New(errdefs.NoSpace, "this run has made %d requests", len(c.used))
	}
	c.used[id] = true
	return nil
}
