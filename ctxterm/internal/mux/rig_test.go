package mux

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"cortexfs.org/ctxterm/internal/filter"
	"cortexfs.org/ctxterm/internal/screen"
	"cortexfs.org/libctx/termwire"
)

// program is the side of a program that reads what is typed only when told to.
type program struct {
	mu    sync.Mutex
	typed bytes.Buffer
	sizes []termwire.Size
	deaf  bool
	hear  chan struct{} // closed: Write goes on
	once  sync.Once
}

func (p *program) Resize(s termwire.Size) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes = append(p.sizes, s)
	return nil
}

func (p *program) TryWrite(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return 0, nil
	}
	return p.typed.Write(b)
}

func (p *program) Write(b []byte) (int, error) {
	<-p.hear
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return 0, errors.New("hung up")
	}
	return p.typed.Write(b)
}

func (p *program) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.typed.String()
}

// listen lets the program hear from now on; hangUp ends it.
func (p *program) listen() {
	p.mu.Lock()
	p.deaf = false
	p.mu.Unlock()
	p.once.Do(func() { close(p.hear) })
}

func (p *program) hangUp() { p.once.Do(func() { close(p.hear) }) }

// record is what was recorded.
type record struct {
	mu     sync.Mutex
	output bytes.Buffer
	events []string // resizes and exits, with how many bytes of output were before
}

func (r *record) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf("%d: ", r.output.Len())+fmt.Sprintf(format, args...))
}

func (r *record) Wait() {}

func (r *record) Output(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.output.Write(b)
}
func (r *record) Resize(s termwire.Size) { r.note("%v", s) }
func (r *record) Exit(code int)          { r.note("exit %d", code) }

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// rig is a Mux with all its sides.
type rig struct {
	*testing.T
	*Mux
	program *program
	record  *record
	ended   bool
}

func newRig(t *testing.T, size termwire.Size) *rig {
	r := &rig{T: t, program: &program{hear: make(chan struct{})}, record: &record{}}
	r.Mux = New(Config{
		ID: "terminal-coder-default", Size: size, Program: r.program, Filter: &filter.Filter{}, Recorder: r.record,
		Screen: func(size termwire.Size, reply func([]byte)) Screen {
			return screen.New(size, screen.Options{Scrollback: 1000, Reply: reply})
		},
	})
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	if !r.ended {
		r.ended = true
		r.program.hangUp()
		r.Mux.Close()
	}
}

func (r *rig) print(text string) { r.Mux.Write([]byte(text)) }

func (r *rig) join(mode Mode, view View) *viewer {
	r.Helper()
	c, err := r.Join(mode, view)
	if err != nil {
		r.Fatal(err)
	}
	return &viewer{t: r.T, Client: c, want: view.Size}
}

// viewer is a client with a terminal of its own.
type viewer struct {
	t *testing.T
	*Client
	want termwire.Size

	shows *screen.Screen // what its terminal shows
	bytes bytes.Buffer   // of output frames
	kinds []string       // types of the frames, one for each run of output
	seq   uint64
	size  termwire.Size // of the terminal, as it was told
	exit  int
	rest  []byte // frames of the last piece that were not looked at
}

// frame waits for the next frame; nil at the end.
func (v *viewer) frame() termwire.Frame {
	v.t.Helper()
	if len(v.rest) == 0 {
		b, ok := v.Next()
		if !ok {
			return nil
		}
		v.rest = b
	}
	line, rest, ok := bytes.Cut(v.rest, []byte("\n"))
	if !ok {
		v.t.Fatalf("a piece ends in the middle of a frame: %.100q", v.rest)
	}
	v.rest = rest
	f, err := termwire.DecodeFrame(line)
	if err != nil {
		v.t.Fatalf("%v: %.200q", err, line)
	}
	v.see(f)
	return f
}

func (v *viewer) see(f termwire.Frame) {
	v.t.Helper()
	if kind := f.Kind(); kind != "output" || len(v.kinds) == 0 || v.kinds[len(v.kinds)-1] != kind {
		v.kinds = append(v.kinds, kind)
	}
	switch f := f.(type) {
	case *termwire.Hello:
		v.size = f.Size
	case *termwire.Resized:
		v.size = f.Size
	case *termwire.Screen:
		if v.size != f.Size {
			v.t.Errorf("a screen of %v where %v is known", f.Size, v.size)
		}
		v.seq = f.Seq
		if v.shows == nil || v.shows.Size() != v.want {
			v.shows = screen.New(v.want, screen.Options{Scrollback: 1000})
		}
		v.shows.Write(f.Data)
	case *termwire.Bytes:
		if f.Seq != v.seq && v.seq != 0 && f.Seq != v.seq+uint64(len(f.Data)) {
			v.t.Errorf("output of %d bytes to %d after %d", len(f.Data), f.Seq, v.seq)
		}
		v.seq = f.Seq
		v.bytes.Write(f.Data)
		if v.shows != nil {
			v.shows.Write(f.Data)
		}
	case *termwire.Exit:
		v.exit = f.Code
	}
}

// until reads frames until one is of a type.
func (v *viewer) until(kind string) termwire.Frame {
	v.t.Helper()
	for {
		f := v.frame()
		if f == nil {
			v.t.Fatalf("no %s among %v", kind, v.kinds)
		}
		if f.Kind() == kind {
			return f
		}
	}
}

// upTo reads frames until the client has output up to seq.
func (v *viewer) upTo(seq uint64) {
	v.t.Helper()
	for v.seq < seq {
		if v.frame() == nil {
			v.t.Fatalf("ends at %d of %d: %v", v.seq, seq, v.kinds)
		}
	}
}

// all reads to the end.
func (v *viewer) all() {
	v.t.Helper()
	for v.frame() != nil {
	}
}

func (v *viewer) sees(want ...string) {
	v.t.Helper()
	if !slices.Equal(v.kinds, want) {
		v.t.Errorf("frames %v, not %v", v.kinds, want)
	}
}

// shown is the picture of a terminal.
func shown(s *screen.Screen) string { return string(s.Redraw(termwire.Size{})) }

// fed is a terminal that saw everything.
func fed(size termwire.Size, output string) *screen.Screen {
	s := screen.New(size, screen.Options{Scrollback: 1000})
	s.Write([]byte(output))
	return s
}
