package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/approval"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// reader is a client that keeps the frames it gets.
type reader struct {
	*testing.T
	frames []wire.Frame
	over   chan struct{} // closed by the end of the first stream
	board  approval.Board
}

func newReader(t *testing.T) *reader { return &reader{T: t, over: make(chan struct{})} }

func (c *reader) Push(line []byte) bool { c.Note(line); return true }

func (c *reader) Note(line []byte) {
	f, err := wire.DecodeFrame(line)
	if err != nil {
		c.Errorf("%s: %v", line, err)
		return
	}
	c.frames = append(c.frames, f)
}

func (c *reader) Write(context.Context, []byte) error { return nil }
func (c *reader) Gone() context.Context               { return context.Background() }
func (c *reader) Hold() (func(), error)               { return func() { close(c.over) }, nil }
func (c *reader) Asked() *approval.Board              { return &c.board }

// told is what the client learns of the run that its request id became, as a
// client that knows nothing but the id: the types of the frames that it can tell
// are about it, and how the run ended.
func (c *reader) told(id libctx.ClientID) (kinds []string) {
	<-c.over
	var run libctx.Run
	for _, f := range c.frames {
		var names libctx.ClientID
		kind := f.Header().Type
		switch f := f.(type) {
		case *wire.Start:
			names = f.ClientID
		case *wire.Queued:
			names = f.ClientID
			kind = fmt.Sprint(kind, " ", f.Position)
		case *wire.Error:
			names = f.ClientID
			kind += " " + string(f.Code)
		case *wire.Done:
			names = f.ClientID
			kind += " " + f.Status
		}
		if names == id {
			run = f.Header().Run
		}
		if run != "" && f.Header().Run == run {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// TestToldOfItsEnd: however a run ends that has not begun, its client is told in
// a way that it understands, and nothing of the run is recorded.
func TestToldOfItsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(c *conversation, free func())
		want []string
	}{
		{"cancelled", func(c *conversation, free func()) {
			if _, err := c.hub.Cancel(&wire.Cancel{ID: "waits", Session: "s"}); err != nil {
				c.Error(err)
			}
			free()
		}, []string{"queued 1", "done cancelled"}},
		{"stopped", func(c *conversation, free func()) {
			c.live.cancelAll(ErrStopped)
			free()
		}, []string{"queued 1", "done cancelled"}},
		{"host ends", func(c *conversation, free func()) {
			c.live.cancelAll(ErrHost)
			free()
		}, []string{"queued 1", "error EINTR", "done error"}},
		{"can not begin", func(c *conversation, free func()) {
			c.store.refuse = func(batch string) error {
				if strings.Contains(batch, "start") && !strings.Contains(batch, "completed") { // those that ended well are not meant
					return errdefs.New(errdefs.NoSpace, "full")
				}
				return nil
			}
			free()
		}, []string{"queued 1", "error ENOSPC", "done error"}},
		{"begins", func(_ *conversation, free func()) { free() }, []string{"queued 1", "start", "done ok"}},
	} {
		t.Run(c.name+" send", func(t *testing.T) {
			talk := converse(t, scripted{})
			talk.send("busy")
			r := newReader(t)
			q := &wire.Send{ID: "waits", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}
			if err := talk.hub.Send(t.Context(), q, r); err != nil {
				t.Fatal(err)
			}
			c.end(talk, func() {
				talk.turn <- nil
				if c.name == "begins" {
					<-talk.ready
					talk.turn <- nil
				}
			})
			talk.hub.runs.Wait()
			if got := r.told("waits"); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
		t.Run(c.name+" tsh", func(t *testing.T) {
			gate := make(chan struct{})
			talk := converse(t, scripted{tool: func(ctx context.Context, r *Run) error {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				if r.Client == "waits" && c.name == "can not begin" {
					return whole("fine")(ctx, r)
				}
				return nil
			}})
			ask := func(id libctx.ClientID, client Client) {
				q := &wire.Tsh{ID: id, Session: "s", Workspace: "/w", Args: []string{"x"}}
				if err := talk.hub.Tsh(t.Context(), q, client); err != nil {
					t.Fatal(err)
				}
			}
			for i := range libctx.MaxSessionTsh {
				ask(libctx.ClientID(fmt.Sprint("busy-", i)), mute{})
			}
			r := newReader(t)
			ask("waits", r)
			c.end(talk, func() { close(gate) })
			talk.hub.runs.Wait()
			if got := r.told("waits"); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

// TestToldAgain: a request that is made again while its run waits is told which
// run that is.
func TestToldAgain(t *testing.T) {
	talk := converse(t, scripted{})
	talk.send("busy")
	q := &wire.Send{ID: "waits", Session: "s", Scope: "private", Workspace: "/w", Input: "x"}
	first, again := newReader(t), newReader(t)
	for _, r := range []*reader{first, again} {
		if err := talk.hub.Send(t.Context(), q, r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := talk.hub.Cancel(&wire.Cancel{ID: string(first.frames[0].Header().Run)}); err != nil {
		t.Error(err)
	}
	talk.end(nil)
	for _, r := range []*reader{first, again} {
		if got := r.told("waits"); !slices.Equal(got, []string{"queued 1", "done cancelled"}) {
			t.Errorf("told %q", got)
		}
	}
	if want := []string{"user head start", session.Completed}; !slices.Equal(talk.store.seen, want) {
		t.Errorf("batches %q, want %q", talk.store.seen, want)
	}
}
