package mux

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
)

var size80 = termwire.Size{Cols: 80, Rows: 24}

func view(cols, rows int) View { return View{Size: termwire.Size{Cols: cols, Rows: rows}} }

func TestAClientSeesTheTerminal(t *testing.T) {
	r := newRig(t, size80)
	r.print("before\r\n")
	v := r.join(Watch, view(80, 24))
	r.print("after\r\n")
	v.upTo(15)
	hello := r.join(Emit, View{}).frame().(*termwire.Hello)
	if want := (termwire.Hello{Protocol: 1, ID: "terminal-coder-default", Mode: "emit", Size: size80}); *hello != want {
		t.Errorf("%+v", hello)
	}
	r.End(3)
	v.all()
	v.sees("hello", "screen", "output", "exit")
	if v.bytes.String() != "after\r\n" || v.exit != 3 || shown(v.shows) != shown(fed(size80, "before\r\nafter\r\n")) {
		t.Errorf("%q, %d, %q", &v.bytes, v.exit, v.shows.Text())
	}
	if _, err := r.Join(Watch, View{}); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("joined after the end: %v", err)
	}
	if r.record.String() != "before\r\nafter\r\n" || fmt.Sprint(r.record.events) != "[0: 80x24 15: exit 3]" {
		t.Errorf("recorded %q, %q", r.record, r.record.events)
	}
}

// pieces are what programs write.
var pieces = []string{
	"plain text ", "\r\n", "\t", "\b", "ünï→cödé ", "漢字", "e\u0301", "\x1b[1;31m", "\x1b[0m", "\x1b[5;10H", "\x1b[2K", "\x1b[J",
	"\x1b[?1049h", "\x1b[?1049l", "\x1b[3;20r", "\x1b[r", "\x1b7", "\x1b8", "\x1b[?25l", "\x1b[?25h", "\x1b]2;a title\a", "\x1b[?2004h",
	"\x1b(0lqk\x1b(B", "\x1b[4h", "\x1b[4l", "\x1b[38;2;1;2;3m", "\x1bM", "\x1b[2L", "\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\", "\x1b[L",
}

// A client that joins at any byte, and one that read late, show what one that
// was there from the beginning does.
func TestTheScreenIsExact(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var all strings.Builder
		for all.Len() < 3000 {
			all.WriteString(pieces[rnd.IntN(len(pieces))])
		}
		r := newRig(t, size80)
		first := r.join(Watch, view(80, 24))
		var viewers []*viewer
		for rest := all.String(); rest != ""; {
			n := min(len(rest), 1+rnd.IntN(60))
			r.print(rest[:n])
			rest = rest[n:]
			if rnd.IntN(4) == 0 {
				viewers = append(viewers, r.join(Watch, view(80, 24)))
			}
		}
		r.End(0)
		want := shown(fed(size80, all.String()))
		for i, v := range append(viewers, first) {
			if v.all(); shown(v.shows) != want {
				t.Errorf("seed %d, client %d: shows %q, not %q", seed, i, shown(v.shows), want)
			}
		}
		if first.bytes.String() != r.record.String() {
			t.Errorf("seed %d: the client and the record differ", seed)
		}
		r.close()
	}
}

func TestEveryByteArrives(t *testing.T) {
	r := newRig(t, size80)
	v := r.join(Watch, View{})
	var all []byte
	for i := range 256 * 40 {
		b := byte(i * 7)
		if b == 0x05 || b == 0x9A || b == 0x1B || b >= 0x90 && b < 0xA0 {
			b = '.' // questions, and what introduces one
		}
		all = append(all, b)
	}
	for rest := all; len(rest) > 0; {
		n := min(len(rest), 1+len(rest)%97)
		r.Mux.Write(rest[:n])
		rest = rest[n:]
	}
	r.End(0)
	v.all()
	if got := v.bytes.String(); got != string(all) || got != r.record.String() {
		t.Errorf("%d bytes of %d, recorded %d", v.bytes.Len(), len(all), len(r.record.String()))
	}
	v.sees("hello", "output", "exit")
}

// A client that does not read loses its place and nothing else happens; when it
// reads, it gets whole frames, is told, and sees what there is.
func TestASlowClient(t *testing.T) {
	r := newRig(t, size80)
	slow, fast := r.join(Watch, view(80, 24)), r.join(Watch, view(80, 24))
	fast.until("screen")
	var done sync.WaitGroup
	done.Go(fast.all)
	line := strings.Repeat("x", 70)
	total := 0
	for i := 0; total < 3*libctx.MaxTermBacklog; i++ {
		text := strings.Repeat(fmt.Sprintf("%s%8d\r\n", line, i), 50)
		total += len(text)
		r.print(text)
	}
	r.mu.Lock()
	if slow.place.in != nil || !slow.lagging || len(slow.own) > 4096 {
		t.Errorf("it is kept %d bytes", len(slow.own))
	}
	r.mu.Unlock()
	slow.until("lagged")
	slow.until("screen")
	r.print("the last line")
	r.End(0)
	slow.all()
	done.Wait()
	if got := slow.kinds[len(slow.kinds)-4:]; fmt.Sprint(got) != "[lagged screen output exit]" {
		t.Errorf("%v", slow.kinds)
	}
	if shown(slow.shows) != shown(fast.shows) || !strings.Contains(shown(slow.shows), "the last line") {
		t.Errorf("shows %q", slow.shows.Text())
	}
}

// One that never reads until the program has ended gets the end too.
func TestAClientThatReadsOnlyTheEnd(t *testing.T) {
	r := newRig(t, size80)
	slow := r.join(Watch, view(80, 24))
	for i := range 100 {
		r.print(strings.Repeat(fmt.Sprintf("line %d\r\n", i), 10_000))
	}
	r.End(7)
	slow.all()
	slow.sees("hello", "lagged", "screen", "exit")
	if shown(slow.shows) != shown(fed(size80, strings.Repeat("line 99\r\n", 100))) || slow.exit != 7 {
		t.Errorf("shows %q", slow.shows.Text())
	}
}

// A pipe that lags goes on with bytes.
func TestASlowPipe(t *testing.T) {
	r := newRig(t, size80)
	pipe := r.join(Watch, View{})
	for range 100 {
		r.print(strings.Repeat("0123456789\r\n", 10_000))
	}
	pipe.until("lagged")
	if b, _ := pipe.take(); b != nil { // asks for its place
		t.Errorf("%q", b)
	}
	r.print("the end")
	r.End(0)
	pipe.all()
	pipe.sees("hello", "lagged", "output", "exit")
	if pipe.bytes.String() != "the end" {
		t.Errorf("%q", &pipe.bytes)
	}
}

// 256 clients that do not read cost what one does.
func TestClientsShareMemory(t *testing.T) {
	r := newRig(t, size80)
	for i := range libctx.MaxTermClients {
		r.join(Watch, view(80, 24))
		if i%10 == 0 { // so that they are at different places
			r.print(strings.Repeat("0123456789\r\n", 5000))
		}
	}
	for range 20 {
		r.print(strings.Repeat("0123456789\r\n", 5000))
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 64<<20 {
		t.Errorf("%d bytes in use", m.HeapAlloc)
	}
}

// The program's questions are answered once, whoever looks.
func TestQuestions(t *testing.T) {
	for clients := range 4 {
		r := newRig(t, size80)
		var viewers []*viewer
		for range clients {
			viewers = append(viewers, r.join(Watch, view(80, 24)))
		}
		r.print("ab\x1b[6n\x1b[")
		r.print("6n")
		late := r.join(Watch, view(80, 24))
		r.End(0)
		for _, v := range append(viewers, late) {
			if v.all(); strings.Contains(v.bytes.String(), "6n") {
				t.Errorf("a client is asked: %q", &v.bytes)
			}
		}
		if got := r.program.String(); got != "\x1b[1;3R\x1b[1;3R" {
			t.Errorf("%d clients: answers %q", clients, got)
		}
		if strings.Contains(r.record.String(), "6n") {
			t.Errorf("recorded %q", r.record)
		}
	}
}

// In the middle of a sequence a client gets a picture at once, and its place
// where the sequence ends.
func TestJoinInASequence(t *testing.T) {
	r := newRig(t, size80)
	r.print("text \x1b]2;half a tit")
	v := r.join(Watch, view(80, 24))
	v.until("screen")
	if got := v.shows.Text()[0]; got != "text" {
		t.Errorf("shows %q", got)
	}
	r.print("le\a")
	v.until("screen")
	r.print("more")
	r.End(0)
	v.all()
	if v.bytes.String() != "more" || shown(v.shows) != shown(fed(size80, "text \x1b]2;half a title\amore")) {
		t.Errorf("%q: %q", &v.bytes, v.shows.Text())
	}
}
