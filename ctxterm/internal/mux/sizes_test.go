package mux

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
)

func TestTheSmallestAttachedClientSizesTheTerminal(t *testing.T) {
	r := newRig(t, size80)
	var sizes []string
	is := func(want string) {
		t.Helper()
		r.mu.Lock()
		defer r.mu.Unlock()
		if sizes = append(sizes, want); r.size.String() != want {
			t.Errorf("the terminal is %v, not %s", r.size, want)
		}
	}
	watcher := r.join(Watch, view(20, 5))
	is("80x24")
	wide := r.join(Attach, view(120, 20))
	is("120x20")
	high := r.join(Attach, view(90, 50))
	is("90x20")
	high.Resize(termwire.Size{Cols: 70, Rows: 10})
	is("70x10")
	high.Leave()
	is("120x20")
	watcher.Leave()
	is("120x20")
	wide.Leave()
	is("120x20")
	r.join(Emit, View{})
	is("120x20")
	if got := fmt.Sprint(r.program.sizes); got != "[120x20 90x20 70x10 120x20]" {
		t.Errorf("the program was told %v", got)
	}
	if got := fmt.Sprint(r.record.events); got != "[0: 80x24 0: 120x20 0: 90x20 0: 70x10 0: 120x20]" {
		t.Errorf("recorded %v", got)
	}
}

// A client whose size is the terminal's goes on with bytes when both change;
// between them it is told, and shown the screen.
func TestResize(t *testing.T) {
	r := newRig(t, size80)
	v := r.join(Attach, view(80, 24))
	r.print("before ")
	v.upTo(7)
	v.want = termwire.Size{Cols: 40, Rows: 10}
	v.Resize(v.want)
	r.print("after")
	r.End(0)
	v.all()
	v.sees("hello", "screen", "output", "resized", "screen", "output", "exit")
	if v.size != v.want || v.bytes.String() != "before after" || shown(v.shows) != shown(fed(v.want, "before after")) {
		t.Errorf("%v, %q, %q", v.size, &v.bytes, v.shows.Text())
	}
}

// Bytes that were printed before a resize are not lost by it.
func TestResizeLosesNothing(t *testing.T) {
	r := newRig(t, size80)
	v := r.join(Attach, view(80, 24))
	v.until("screen")
	r.print("unread\r\n")
	v.want = termwire.Size{Cols: 60, Rows: 24}
	v.Resize(v.want)
	r.End(0)
	v.all()
	v.sees("hello", "screen", "output", "resized", "screen", "exit")
	if v.bytes.String() != "unread\r\n" {
		t.Errorf("%q", &v.bytes)
	}
}

// A client changes between bytes and screens as its size fits or does not.
func TestAClientOfAnotherSizeIsDrawn(t *testing.T) {
	r := newRig(t, size80)
	v, other := r.join(Attach, view(80, 24)), r.join(Watch, view(30, 5))
	r.print("one\r\n")
	v.upTo(5)
	other.until("screen")
	small := r.join(Attach, view(30, 5))
	small.until("screen")
	r.print("two\r\n")
	for !strings.Contains(fmt.Sprint(v.shows.Text()), "two") {
		v.frame() // it is drawn from here on
	}
	if v.size != small.want {
		t.Errorf("told %v", v.size)
	}
	small.Leave()
	for v.size != v.want {
		v.frame()
	}
	r.print("three")
	r.End(0)
	v.all()
	other.all()
	if !strings.HasSuffix(v.bytes.String(), "three") || shown(v.shows) != shown(fed(size80, "one\r\ntwo\r\nthree")) {
		t.Errorf("%q: %q", &v.bytes, v.shows.Text())
	}
	if got := other.shows.Text(); !slices.Equal(got, []string{"one", "two", "three", "", ""}) {
		t.Errorf("shows %q", got)
	}
}

// A drawn client gets one screen at a time, no sooner than it may, and the last
// one at the end.
func TestDrawnAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, size80)
		defer r.close()
		v := r.join(Watch, view(40, 10))
		v.until("screen")
		begin := time.Now()
		for i := range 50 {
			r.print(fmt.Sprintf("line %d\r\n", i))
			synctest.Wait()
		}
		v.until("screen")
		if took := time.Since(begin); took != libctx.TermRedraw {
			t.Errorf("drawn again after %v", took)
		}
		if got := v.shows.Text()[8]; got != "line 49" {
			t.Errorf("shows %q", got)
		}
		r.print("x")
		synctest.Wait()
		<-time.After(time.Hour)
		r.print("y")
		synctest.Wait()
		r.print("z")
		r.End(0)
		v.all()
		v.sees("hello", "screen", "screen", "screen", "exit")
		if got := v.shows.Text()[9]; got != "xyz" {
			t.Errorf("shows %q", got)
		}
	})
}

// One that wants lines above the screen gets them once.
func TestScrollback(t *testing.T) {
	r := newRig(t, termwire.Size{Cols: 20, Rows: 3})
	for i := range 10 {
		r.print(fmt.Sprintf("line %d\r\n", i))
	}
	v := r.join(Watch, View{Size: termwire.Size{Cols: 20, Rows: 3}, Scrollback: 4})
	v.until("screen")
	if got := string(v.shows.Scrollback(100)); got != "line 4\r\nline 5\r\nline 6\r\nline 7\r\n" {
		t.Errorf("above the screen: %q", got)
	}
	if got := v.shows.Text(); !slices.Equal(got, []string{"line 8", "line 9", ""}) {
		t.Errorf("shows %q", got)
	}
}

// A screen that one frame does not hold comes in several.
func TestALargeScreen(t *testing.T) {
	size := termwire.Size{Cols: 1000, Rows: 200}
	r := newRig(t, size)
	for i := range 200 * 500 {
		r.print(fmt.Sprintf("\x1b[38;5;%dm字", i%256))
	}
	v := r.join(Watch, View{Size: size})
	v.until("screen")
	if len(v.rest) == 0 {
		t.Error("one frame was enough")
	}
	r.End(0)
	v.all()
	var want strings.Builder
	for i := range 200 * 500 {
		fmt.Fprintf(&want, "\x1b[38;5;%dm字", i%256)
	}
	if shown(v.shows) != shown(fed(size, want.String())) {
		t.Error("shows something else")
	}
}
