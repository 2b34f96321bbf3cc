package mux

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestEmittedTextIsShownAbove(t *testing.T) {
	r := newRig(t, size80)
	v, agent := r.join(Watch, view(80, 24)), r.join(Emit, View{})
	r.print("done\r\n$ half a comm")
	agent.Emit([]byte("\x1b[1mtool\x1b[0m fs.read\tx\nbad \x1b[2J\a\x1b]52;c;x\a"))
	for !strings.Contains(strings.Join(v.textNow(), "\n"), "fs.read") {
		v.frame()
	}
	r.print("and")
	r.End(0)
	v.all()
	agent.all()
	agent.sees("hello", "exit")
	want := "done\ntool fs.read    x\nbad \\x1b[2J\\x07\\x1b]52;c;x\\x07\n$ half a command"
	if got := strings.TrimSpace(strings.Join(v.shows.Text(), "\n")); got != want {
		t.Errorf("shows %q", got)
	}
	if v.bytes.String() != r.record.String()[len(r.record.String())-v.bytes.Len():] {
		t.Errorf("the client and the record differ: %q, %q", &v.bytes, r.record)
	}
	if shown(v.shows) != shown(fed(size80, r.record.String())) {
		t.Errorf("the record shows something else")
	}
	if r.program.String() != "" {
		t.Errorf("typed %q", r.program)
	}
}

func (v *viewer) textNow() []string {
	if v.shows == nil {
		return nil
	}
	return v.shows.Text()
}

// While the alternate screen shows, what is emitted waits, the newest of it.
func TestEmittedTextWaitsForTheMainScreen(t *testing.T) {
	r := newRig(t, size80)
	agent := r.join(Emit, View{})
	r.print("$ vim\r\n\x1b[?1049h~")
	r.drawn()
	agent.Emit([]byte("the first\n"))
	for range 3 {
		agent.Emit([]byte(strings.Repeat("a line\n", libctx.MaxTermEmitted/14)))
	}
	agent.Emit([]byte("the last\n"))
	r.print("~~")
	if got := r.record.String(); strings.Contains(got, "line") {
		t.Errorf("shown too soon: %q", got)
	}
	r.print("\x1b[?1049l")
	r.print("$ ")
	r.End(0)
	got := r.record.String()
	if !strings.Contains(got, "[…]") || !strings.Contains(got, "the last") || strings.Contains(got, "the first") {
		t.Errorf("shown: %.200q", got)
	}
	if len(got) > 2*libctx.MaxTermEmitted {
		t.Errorf("%d bytes", len(got))
	}
}

// TestEmittedTextAndAnOpenSequence: a program that stops in the middle of a
// sequence keeps no emitter waiting, and what was said is shown once it goes on.
func TestEmittedTextAndAnOpenSequence(t *testing.T) {
	r := newRig(t, size80)
	agent := r.join(Emit, View{})
	r.print("before \x1b]0;a title that")
	r.drawn()
	for range 4 { // more than there is room for
		agent.Emit([]byte(strings.Repeat("a line\n", libctx.MaxTermEmitted/14)))
	}
	agent.Emit([]byte("the last\n"))
	if got := r.record.String(); strings.Contains(got, "line") {
		t.Errorf("shown in a sequence: %.200q", got)
	}
	r.print(" ends\aafter")
	r.End(0)
	if got := r.record.String(); !strings.Contains(got, "the last") || !strings.Contains(got, "after") {
		t.Errorf("shown: %.200q", got)
	}
}

// drawn waits until the painter has seen what was printed.
func (r *rig) drawn() {
	v := r.join(Watch, view(80, 24))
	v.until("screen")
	v.Leave()
}

// In a flood it is shown between two sequences.
func TestEmittedTextInAFlood(t *testing.T) {
	r := newRig(t, size80)
	agent := r.join(Emit, View{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		for range 50 {
			agent.Emit([]byte("EMITTED\n"))
		}
	}()
	for saying := true; saying; {
		select {
		case <-said:
			saying = false
		default:
		}
		r.print("\x1b[3")
		r.print(strings.Repeat("1mred\x1b[m text\r\n\x1b[3", 20))
		r.print("2m")
	}
	r.End(0)
	got := r.record.String()
	if n := strings.Count(got, "EMITTED"); n != 50 {
		t.Errorf("shown %d times", n)
	}
	for i := 0; ; {
		n := strings.Index(got[i:], "\x1b[3")
		if n < 0 {
			break
		}
		i += n + 3
		if c := got[i]; c < '0' || c > '9' {
			t.Fatalf("cut: %q", got[max(0, i-20):i+20])
		}
	}
}

// A program that does not read holds up those who type, not the output.
func TestInputWaits(t *testing.T) {
	r := newRig(t, size80)
	r.program.deaf = true
	v := r.join(Attach, view(80, 24))
	v.until("screen")
	var typed strings.Builder
	piece := strings.Repeat("0123456789abcdef", libctx.MaxTermInput/16)
	n := 0
	var room <-chan struct{}
	for ok := true; ok; n++ {
		if room, ok = r.Type([]byte(piece)); ok {
			typed.WriteString(piece)
		}
	}
	if got := typed.Len(); got == 0 || got > libctx.MaxTermTyped {
		t.Errorf("%d bytes wait", got)
	}
	r.print("output \x1b[6n goes on")
	v.upTo(15)
	r.drawn() // the answer to its question has found no room
	r.program.listen()
	<-room
	for {
		room, ok := r.Type([]byte("end"))
		if ok {
			break
		}
		<-room
	}
	for !strings.HasSuffix(r.program.String(), "end") {
		<-r.keysIdle()
	}
	if got := r.program.String(); got != typed.String()+"end" {
		t.Errorf("%d bytes arrived of %d", len(got), typed.Len()+3)
	}
}

// keysIdle is closed when the typist has written something.
func (r *rig) keysIdle() <-chan struct{} {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	if len(r.keys.waiting)+r.keys.writing == 0 {
		done := make(chan struct{})
		close(done)
		return done
	}
	return r.keys.room
}

func TestRefuse(t *testing.T) {
	r := newRig(t, size80)
	v := r.join(Attach, view(80, 24))
	for range 10_000 { // it does not read them
		v.Refuse(errdefs.New(errdefs.Invalid, "no"), false)
	}
	r.mu.Lock()
	if n := len(v.own); n > libctx.MaxTermLine+1024 {
		t.Errorf("%d bytes wait", n)
	}
	r.mu.Unlock()
	v.until("error")
	v.Refuse(errdefs.New(errdefs.Denied, "never"), true)
	v.all()
	if v.kinds[len(v.kinds)-1] != "error" {
		t.Errorf("%v", v.kinds[len(v.kinds)-1])
	}
	v.Leave()
	if _, ok := v.Next(); ok {
		t.Error("there is more after Leave")
	}
}
