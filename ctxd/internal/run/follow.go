package run

import (
	"context"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// replayChunk is how many bytes of recorded frames are read at a time.
const replayChunk = 256 << 10

// sub is a client that is told of live frames: of one run, or of all of a
// session.
type sub struct {
	client  hearer
	run     libctx.Run   // "": every run of the session
	last    libctx.Event // the newest durable frame the client was given
	release func()
}

// hearer is as much of a client as live frames need.
type hearer interface {
	Push(line []byte) bool
	Note(line []byte)
}

// silent is a Shower as a hearer; what clients are told aside is not for it.
type silent struct{ Shower }

func (silent) Note([]byte) {}

// show tells whoever shows runs of this one. Called with mu held.
func (l *Live) show(r *Run) {
	if show := l.hub.cfg.Show; show != nil && r.Scope != "temp" {
		s := silent{show(l.name)}
		l.subs = append(l.subs, &sub{client: s, run: r.ID, release: s.Close})
	}
}

// watch tells a client of everything the run does from now on. Called with mu
// held.
func (l *Live) watch(run libctx.Run, c Client) error {
	release, err := c.Hold()
	if err != nil {
		return err
	}
	l.subs = append(l.subs, &sub{client: c, run: run, release: release})
	return nil
}

// unwatch ends the streams of clients that wait for one run. Called with mu
// held.
func (l *Live) unwatch(run libctx.Run) {
	l.subs = slices.DeleteFunc(l.subs, func(s *sub) bool {
		if s.run != run {
			return false
		}
		s.release()
		return true
	})
}

// endFollowers ends the streams of clients that follow the whole session, once
// nothing in it is active. Called with mu held.
func (l *Live) endFollowers() {
	if len(l.runs()) > 0 {
		return
	}
	l.subs = slices.DeleteFunc(l.subs, func(s *sub) bool {
		if s.run != "" {
			return false
		}
		l.noteEnd(s.client)
		s.release()
		return true
	})
}

// lives reports whether more frames of a run can come, or of any run for "".
func (l *Live) lives(run libctx.Run) bool {
	return slices.ContainsFunc(l.runs(), func(r *Run) bool { return run == "" || r.ID == run })
}

func (l *Live) noteEnd(c hearer) {
	if line, err := wire.MarshalFrame(&wire.End{Head: wire.Head{Type: "end"}, Session: l.name}); err == nil {
		c.Note(line)
	}
}

// say tells the clients of a run about something that is not durable.
func (l *Live) say(run libctx.Run, f wire.Frame) {
	f.Header().Run = run
	if line, err := wire.MarshalFrame(f); err == nil {
		l.push(session.Event{Run: run, Line: line})
	}
}

// push hands one frame to everybody who is told of its run. A client without
// room is told that it lagged and gets nothing more of this stream; it catches
// up from the record. Called with mu held; never waits.
func (l *Live) push(e session.Event) {
	l.subs = slices.DeleteFunc(l.subs, func(s *sub) bool {
		if s.run != "" && s.run != e.Run {
			return false
		}
		if s.client.Push(e.Line) {
			if e.ID != "" {
				s.last = e.ID
			}
			return false
		}
		lagged := &wire.Lagged{Head: wire.Head{Type: "lagged", Run: e.Run}, After: s.last}
		if line, err := wire.MarshalFrame(lagged); err == nil {
			s.client.Note(line)
		}
		s.release()
		return true
	})
}

// follow gives a client the recorded frames from offset on, of one run or of
// all, then the live ones while there are any. With end set the stream closes
// with an end frame. Called with mu held; the work is a goroutine that ends with
// the client.
func (l *Live) follow(c Client, offset int64, run libctx.Run, end bool) error {
	if run != "" {
		first, err := l.store.FindRun(run)
		if err != nil {
			return err
		}
		offset = first
	}
	release, err := c.Hold()
	if err != nil {
		return err
	}
	if err := l.hub.engage(l, &l.hub.followers); err != nil {
		release()
		return err
	}
	store, gen := l.store, l.gen
	go func() {
		defer l.hub.disengage(l)
		ctx, stop := context.WithCancel(c.Gone())
		defer stop()
		defer context.AfterFunc(l.hub.over, stop)()
		f := follower{l: l, c: c, s: &sub{client: c, run: run, release: release}, end: end}
		f.replay(ctx, store, gen, offset)
	}()
	return nil
}

type follower struct {
	l    *Live
	c    Client
	s    *sub
	end  bool
	tail []byte // the last frame that was given
	done bool   // the run's done frame was given
}

// replay copies recorded frames at the client's own pace and joins the live
// ones at the moment nothing recorded is left.
func (f *follower) replay(ctx context.Context, store ledger, gen int, offset int64) {
	for !f.done {
		lines, after, err := store.ReadEvents(offset, replayChunk)
		if err != nil {
			f.fail(f.l.reading(gen, err))
			return
		}
		offset = after
		for _, line := range lines {
			if !f.give(ctx, line) {
				f.s.release()
				return
			}
		}
		if len(lines) == 0 && f.join(gen, offset) {
			return
		}
	}
	f.s.release()
}

// give writes one recorded frame if it belongs to the stream; false means the
// client is gone. What a frame says is only looked at where one run is followed.
func (f *follower) give(ctx context.Context, line []byte) bool {
	if f.s.run != "" {
		head, ok := f.head(line)
		if !ok {
			return false
		}
		if head.Run != f.s.run {
			return true
		}
		f.done = head.Type == "done"
	}
	if f.c.Write(ctx, line) != nil {
		return false
	}
	f.tail = line
	return true
}

// head is the head of a recorded frame.
func (f *follower) head(line []byte) (head wire.Head, ok bool) {
	if err := wire.Object(line, &head); err != nil {
		f.fail(errdefs.New(errdefs.IO, "recorded frame: %w", err))
		return head, false
	}
	return head, true
}

// join turns the follower into a subscriber, unless more was recorded
// meanwhile. It reports whether the replay is over.
func (f *follower) join(gen int, offset int64) bool {
	l := f.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil || l.gen != gen { // there may be more than could be read
		f.fail(l.failed())
		return true
	}
	if l.store.EventsEnd() != offset {
		return false
	}
	if !l.lives(f.s.run) {
		if f.end {
			l.noteEnd(f.s.client)
		}
		f.s.release()
		return true
	}
	if f.tail != nil {
		head, ok := f.head(f.tail)
		if !ok {
			return true
		}
		f.s.last = head.ID
	}
	l.subs = append(l.subs, f.s)
	return true
}

// reading is why the record of one opening can not be read: err, or that storage
// failed meanwhile.
func (l *Live) reading(gen int, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.store == nil || l.gen != gen {
		return l.failed()
	}
	return err
}

// fail ends the stream with an error.
func (f *follower) fail(err error) {
	text, _ := wire.Clip(wire.Clean([]byte(err.Error())), 4096)
	line, merr := wire.MarshalFrame(&wire.Error{
		Head: wire.Head{Type: "error"}, Code: errdefs.KindOf(err), Message: text,
	})
	if merr == nil {
		f.s.client.Note(line)
	}
	f.s.release()
}
