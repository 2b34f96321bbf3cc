package server

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"

	"cortexfs.org/libctx"
)

// outbox is what waits to be written to one client: bounded in bytes and
// frames, so that a client that does not read costs a fixed amount and nobody
// waits for it unless they choose to.
type outbox struct {
	mu     sync.Mutex
	change sync.Cond // signalled when lines come, go, or the box closes
	lines  [][]byte
	bytes  int
	closed bool  // nothing is taken any more; what is there is still written
	failed error // the client is gone
}

func newOutbox() *outbox {
	o := new(outbox)
	o.change.L = &o.mu
	return o
}

// full reports whether line has no room now. A single line always fits into an
// empty box.
func (o *outbox) full(line []byte) bool {
	return len(o.lines) > 0 && (o.bytes+len(line) > libctx.MaxOutboxBytes || len(o.lines) >= libctx.MaxOutboxFrames)
}

func (o *outbox) add(line []byte) {
	o.lines = append(o.lines, line)
	o.bytes += len(line)
	o.change.Broadcast()
}

// try takes line if there is room and never waits. It reports false when the
// line was not taken.
func (o *outbox) try(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed != nil || o.closed {
		return true // nobody reads; nothing to catch up with
	}
	if o.full(line) {
		return false
	}
	o.add(line)
	return true
}

// force takes a short line even when the box is full: the word that a client
// lagged, and the answer that a request was refused.
func (o *outbox) force(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil && !o.closed {
		o.add(line)
	}
}

// put waits for room. It ends with the context's error or when the client is
// gone.
func (o *outbox) put(ctx context.Context, line []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.full(line) {
		o.await(ctx, line)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case o.failed != nil:
		return o.failed
	case o.closed:
		return io.ErrClosedPipe
	}
	o.add(line)
	return nil
}

// await waits for room or for a reason not to. Called with mu held.
func (o *outbox) await(ctx context.Context, line []byte) {
	stop := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.change.Broadcast()
	})
	defer stop()
	for o.full(line) && o.failed == nil && !o.closed && ctx.Err() == nil {
		o.change.Wait()
	}
}

// close lets the writer end once everything taken is written.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.change.Broadcast()
}

// fail drops everything: the client is gone.
func (o *outbox) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = err
	}
	o.lines, o.bytes = nil, 0
	o.change.Broadcast()
}

// What one system call writes at most, unless a single line is longer: enough
// that the call itself costs next to nothing.
const (
	writeFrames = 64
	writeBytes  = 256 << 10
)

// next waits for lines and takes what one write is to carry; false means there
// will be none.
func (o *outbox) next() (net.Buffers, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && !o.closed && o.failed == nil {
		o.change.Wait()
	}
	if len(o.lines) == 0 {
		return nil, false
	}
	n, bytes := 1, len(o.lines[0])
	for n < min(len(o.lines), writeFrames) && bytes+len(o.lines[n]) <= writeBytes {
		bytes += len(o.lines[n])
		n++
	}
	taken := slices.Clone(o.lines[:n])
	clear(o.lines[:n])
	o.lines = o.lines[n:]
	o.bytes -= bytes
	o.change.Broadcast()
	return taken, true
}

// drain writes lines to w until the box is closed and empty or w fails.
func (o *outbox) drain(w io.Writer) {
	for {
		lines, ok := o.next()
		if !ok {
			return
		}
		if _, err := lines.WriteTo(w); err != nil {
			o.fail(err)
			return
		}
	}
}
