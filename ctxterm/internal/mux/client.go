package mux

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
)

// Mode is what a client may do.
type Mode string

// The modes, as the hello frame names them.
const (
	Watch  Mode = "watch"
	Attach Mode = "attach"
	Emit   Mode = "emit"
)

// View is what a client can show. The zero Size is a pipe.
type View struct {
	termwire.Size
	Scrollback int // lines above the screen that it wants first
}

// Client is one connection's side of the terminal. One goroutine calls Next.
// Fields are guarded by the lock of the Mux.
type Client struct {
	m    *Mux
	mode Mode
	view View
	told termwire.Size // size of the terminal, as the client knows it
	news int64         // where in the stream it is told that

	direct func([]byte) int // writes what can be written without waiting
	rest   []byte           // what it has not written of its last piece

	own []byte // frames for this client alone; they go before everything else

	// A client that gets the program's bytes has a place. At the position stop,
	// if it is not negative, the screen fresh goes in between as soon as it is
	// there; after that the client has its place only if it follows.
	place   place
	stop    int64
	fresh   []byte
	follow  bool
	joining bool // it has its place from now on, but not the screen that comes first
	wish    int  // counts its wishes for a screen: an answer to an older one is void
	wanting bool
	lagging bool // it gets a screen and a place once it has read what it was given

	// A client that is drawn has no place.
	drawn bool
	shown uint64    // version of the screen that it has
	busy  bool      // what it was given last is not written yet
	due   time.Time // when it may be drawn again

	here   bool // Join is done
	asleep bool // Next waits
	listed bool // it is in the asleep of the Mux
	wake   chan struct{}
	closed bool // it is given what own holds, and ends
	gone   bool
}

// Join makes a client. The first frame it gets is hello; one that sees the
// terminal then gets a screen, unless it is a pipe, and output from there on. The
// caller calls Leave. After End it is errdefs.Unavailable.
func (m *Mux) Join(mode Mode, view View) (*Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil, errdefs.New(errdefs.Unavailable, "the program of this terminal has ended")
	}
	c := &Client{m: m, mode: mode, view: view, stop: -1, wake: make(chan struct{}, 1)}
	m.clients[c] = struct{}{}
	m.fit()
	c.told, c.here = m.size, true
	c.say(&termwire.Hello{Protocol: termwire.Protocol, ID: m.cfg.ID, Mode: string(mode), Size: m.size})
	if mode != Emit {
		m.want(c)
	}
	return c, nil
}

// Leave ends the client: Next returns false, and its size counts no more.
func (c *Client) Leave() {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.gone = true
	c.place, c.own, c.fresh = place{}, nil, nil
	delete(c.m.clients, c)
	c.draw(false)
	c.rouse()
	c.m.fit()
}

// Refuse tells the client what was wrong with what it sent, unless it does not
// read and many such words wait. If it is the last word the client then ends.
func (c *Client) Refuse(err error, last bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if len(c.own) < libctx.MaxTermLine {
		c.say(&termwire.Error{Code: errdefs.KindOf(err), Message: err.Error()})
	}
	c.closed = c.closed || last
	c.rouse()
}

// A key's echo goes to a client whose Next waits without waking its goroutine,
// if there is little of it and there are few such clients.
const (
	maxDirect      = 2
	maxDirectBytes = 2 << 10
)

// Direct gives the client a function that writes what can be written without
// waiting. It is called while Next waits.
func (c *Client) Direct(write func([]byte) int) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.direct = write
}

// handOver writes what is new in the stream, without the goroutine that waits in
// Next; false if that has to be woken.
func (c *Client) handOver() bool {
	if c.direct == nil || !c.asleep || c.gone || c.closed || c.lagging || len(c.own) > 0 || c.place.in == nil || c.stop >= 0 ||
		c.m.out.end-c.place.pos > maxDirectBytes {
		return false
	}
	b := c.place.take(c.m.out.end)
	c.rest = b[c.direct(b):]
	return len(c.rest) == 0 && c.place.pos == c.m.out.end
}

// draw says whether the client is drawn from now on.
func (c *Client) draw(drawn bool) {
	if c.drawn != drawn {
		c.drawn = drawn
		if drawn {
			c.m.drawn++
		} else {
			c.m.drawn--
		}
	}
}

// say gives the client a frame of its own.
func (c *Client) say(f termwire.Frame) {
	line, err := termwire.MarshalFrame(f)
	if err == nil { // all of them are short and valid
		c.own = append(c.own, line...)
	}
}

// Next waits for what is to be written to the client: whole frames. False means
// that there will be none.
func (c *Client) Next() ([]byte, bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for {
		if b, ok := c.take(); b != nil || !ok {
			return b, ok
		}
		c.asleep = true
		if c.place.in != nil && !c.listed {
			c.listed = true
			c.m.asleep = append(c.m.asleep, c)
		}
		c.m.mu.Unlock()
		<-c.wake
		c.m.mu.Lock()
	}
}

// rouse lets Next look again.
func (c *Client) rouse() {
	if c.asleep {
		c.asleep = false
		c.wake <- struct{}{} // its slot is free: nobody has roused it before
	}
}

// take takes what is next; nothing if the client has to wait.
func (c *Client) take() ([]byte, bool) {
	switch {
	case c.gone:
		return nil, false
	case len(c.rest) > 0:
		b := c.rest
		c.rest = nil
		return b, true
	case len(c.own) > 0:
		b := c.own
		c.own = nil
		return b, true
	case c.closed:
		return nil, false
	case c.lagging: // all that was written is on its way
		c.lagging = false
		c.m.want(c)
	case c.drawn && c.busy:
		c.busy = false
		c.m.kick()
	}
	if c.place.in != nil {
		limit := c.m.out.end
		if c.stop >= 0 {
			limit = c.stop
		}
		if c.place.pos < limit {
			return c.place.take(limit), true
		}
		if c.stop >= 0 && c.fresh != nil {
			b := c.fresh
			c.fresh, c.stop, c.joining = nil, -1, false
			if !c.follow {
				c.place, c.busy = place{}, true
				c.draw(true)
			}
			return b, true
		}
	}
	if c.m.over && c.current() {
		c.say(&termwire.Exit{Code: c.m.code})
		c.closed = true
		return c.take()
	}
	return nil, true
}

// current reports whether the client has everything there is. Called when
// nothing is left to write.
func (c *Client) current() bool {
	switch {
	case c.wanting || c.lagging || c.stop >= 0:
		return false
	case c.drawn:
		return c.shown == c.m.version
	}
	return true
}

// checkBacklog takes the place from a client that is too far behind.
func (c *Client) checkBacklog() {
	if c.place.in == nil || c.m.out.end-c.place.pos <= libctx.MaxTermBacklog {
		return
	}
	if c.place.pos < c.news {
		c.told = termwire.Size{} // that is among what it loses
	}
	c.place, c.fresh, c.stop, c.joining = place{}, nil, -1, false
	c.wish++
	c.lagging, c.wanting = true, false
	c.say(&termwire.Lagged{})
	c.rouse()
}
