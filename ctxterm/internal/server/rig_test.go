package server

import (
	"bufio"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/ctxterm/internal/filter"
	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/ctxterm/internal/screen"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
)

// program takes what is typed, unless it is deaf.
type program struct {
	deaf  bool
	typed chan string
	gone  chan struct{}
}

func (p *program) Resize(termwire.Size) error { return nil }

func (p *program) TryWrite(b []byte) (int, error) {
	if p.deaf {
		return 0, nil
	}
	p.typed <- string(b)
	return len(b), nil
}

func (p *program) Write([]byte) (int, error) {
	<-p.gone
	return 0, errors.New("hung up")
}

type unrecorded struct{}

func (unrecorded) Wait()                {}
func (unrecorded) Output([]byte)        {}
func (unrecorded) Resize(termwire.Size) {}
func (unrecorded) Exit(int)             {}

// rig is a served terminal without a program.
type rig struct {
	*testing.T
	program *program
	mux     *mux.Mux
	path    string
	signals chan syscall.Signal

	finish func() // the program ends with 0, and the server too
}

func newRig(t *testing.T, guard Guard) *rig { return newRigWith(t, guard, &program{}) }

func newRigWith(t *testing.T, guard Guard, p *program) *rig {
	t.Helper()
	p.typed, p.gone = make(chan string, 100), make(chan struct{})
	r := &rig{T: t, program: p, path: filepath.Join(t.TempDir(), "s"), signals: make(chan syscall.Signal, 10)}
	listener, err := unixsock.Listen(r.path, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	r.mux = mux.New(mux.Config{
		Size: termwire.DefaultSize, Program: p, Filter: &filter.Filter{}, Recorder: unrecorded{},
		Screen: func(size termwire.Size, reply func([]byte)) mux.Screen {
			return screen.New(size, screen.Options{Reply: reply})
		},
	})
	s := New(Config{Listener: listener, Guard: guard, Mux: r.mux, Signal: func(sig syscall.Signal) { r.signals <- sig }})
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	r.finish = sync.OnceFunc(func() {
		r.mux.End(0)
		s.Finish()
		if err := <-served; err != nil {
			t.Errorf("served: %v", err)
		}
		close(p.gone)
		r.mux.Close()
		listener.Close()
	})
	t.Cleanup(r.finish)
	return r
}

func anybody(peercred.Peer) error { return nil }

// client is a connection to the terminal.
type client struct {
	*testing.T
	*net.UnixConn
	in *bufio.Reader
}

func (r *rig) dial() *client {
	r.Helper()
	c, err := net.Dial("unix", r.path)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { c.Close() })
	return &client{r.T, c.(*net.UnixConn), bufio.NewReader(c)}
}

// say connects and sends lines.
func (r *rig) say(lines string) *client {
	c := r.dial()
	c.send(lines)
	return c
}

func (c *client) send(text string) {
	c.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.Fatal(err)
	}
}

// frame is the next frame, nil at the end of the connection.
func (c *client) frame() termwire.Frame {
	c.Helper()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := c.in.ReadBytes('\n')
	if err != nil {
		var late net.Error
		if errors.As(err, &late) && late.Timeout() || len(line) > 0 {
			c.Fatalf("%v after %q", err, line)
		}
		return nil
	}
	f, err := termwire.DecodeFrame(line)
	if err != nil {
		c.Fatal(err)
	}
	return f
}

// until is the next frame of a kind.
func (c *client) until(kind string) termwire.Frame {
	c.Helper()
	for {
		f := c.frame()
		if f == nil {
			c.Fatalf("the connection ends without %s", kind)
		}
		if f.Kind() == kind {
			return f
		}
	}
}

// refused wants an error of a code next, and the end if it is the last word.
func (c *client) refused(code string, last bool) {
	c.Helper()
	f, ok := c.until("error").(*termwire.Error)
	if !ok || string(f.Code) != code || f.Message == "" {
		c.Errorf("refused with %+v, not %s", f, code)
	}
	if !last {
		return
	}
	if f := c.frame(); f != nil {
		c.Errorf("%s after the last word", f.Kind())
	}
}
