package model

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// patience ends a test that waits for what never comes.
const patience = time.Minute

// canary is the key of the provider lab.
const canary = "sk-canary-0123456789"

// driver is a Driver made of a function.
type driver func(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error

func (d driver) Generate(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error {
	return d(ctx, p, key, g, out)
}

// simple answers with one word.
func simple(_ context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
	for _, f := range []modelwire.Frame{
		&modelwire.Start{Model: g.Model}, &modelwire.Delta{Text: "yes!"},
		&modelwire.MessageFrame{Content: []wire.Part{wire.Text("yes!")}, Stop: modelwire.StopEnd},
	} {
		if err := out.Send(f); err != nil {
			return err
		}
	}
	return nil
}

// bench is a running server.
type bench struct {
	*Server
	t      *testing.T
	socket string
	stop   context.CancelFunc
	ended  chan error
}

// serve runs a server whose provider lab has this driver and a key.
func serve(t *testing.T, d driver, change func(*Server)) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "model")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o711))
	l := paths.Layout{Config: filepath.Join(dir, "config"), Secrets: filepath.Join(dir, "secrets")}
	must(t, os.Mkdir(l.Config, 0o700))
	must(t, provider.Save(l, &provider.Provider{
		Name: "lab", Format: "openai.chat", BaseURL: "https://lab.example", Key: provider.KeyRequired, Models: []provider.Model{{ID: "x"}},
	}))
	must(t, provider.SetKey(l, "lab", provider.DefaultSlot, provider.NewSecret(canary)))
	b := &bench{t: t, socket: filepath.Join(dir, "model.sock"), ended: make(chan error, 1)}
	b.Server = &Server{
		Service: Service{Layout: l, Registry: Registry{Formats: map[string]Driver{"openai.chat": d}, Debug: driver(simple)}},
		Log:     log.Discard(), Drain: patience,
	}
	if change != nil {
		change(b.Server)
	}
	listener, err := unixsock.Listen(b.socket, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	must(t, err)
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	go func() {
		err := b.Serve(ctx, listener)
		listener.Close()
		b.ended <- err
	}()
	t.Cleanup(func() {
		b.stop()
		b.wait()
	})
	return b
}

// wait waits for the end of the server.
func (b *bench) wait() {
	b.t.Helper()
	select {
	case err := <-b.ended:
		b.ended <- err
		if err != nil {
			b.t.Error(err)
		}
	case <-time.After(patience):
		b.t.Fatal("the server does not end")
	}
}

// client is a connection to the server.
type client struct {
	*net.UnixConn
	t     *testing.T
	lines *bufio.Reader
}

func (b *bench) dial() *client {
	b.t.Helper()
	c, err := unixsock.Dial(context.Background(), b.socket)
	must(b.t, err)
	return newClient(b.t, c)
}

func newClient(t *testing.T, c *net.UnixConn) *client {
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return &client{c, t, bufio.NewReader(c)}
}

func (c *client) say(line string) *client {
	c.t.Helper()
	_, err := c.Write([]byte(line + "\n"))
	must(c.t, err)
	return c
}

const hello = `{"op":"generate","version":1,"model":"lab/x","messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`

// answer reads frames to the end of the connection and holds them to their order.
func (c *client) answer(op string) (list []modelwire.Frame) {
	c.t.Helper()
	s := modelwire.Stream{Op: op}
	for {
		line, err := c.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
			if !s.Done() {
				c.t.Errorf("the answer has no end: %s", kinds(list))
			}
			return list
		}
		must(c.t, err)
		f, err := s.Next(line[:len(line)-1])
		must(c.t, err)
		list = append(list, f)
	}
}

// fails reads an answer that fails.
func (c *client) fails(op string) modelwire.Failure {
	c.t.Helper()
	list := c.answer(op)
	for _, f := range list {
		if e, ok := f.(*modelwire.Error); ok {
			return e.Failure
		}
	}
	c.t.Fatalf("no failure in %s", kinds(list))
	return modelwire.Failure{}
}

func kinds(list []modelwire.Frame) string {
	var words []string
	for _, f := range list {
		words = append(words, f.Kind())
	}
	return strings.Join(words, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnswer(t *testing.T) {
	b := serve(t, func(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error {
		if p.Name != "lab" || key.Reveal() != canary || g.Messages[0].Content[0].Text != "hello" {
			return errors.New("not what was asked")
		}
		return simple(ctx, p, key, g, out)
	}, nil)
	if got := kinds(b.dial().say(hello).answer("generate")); got != "start delta message done" {
		t.Error(got)
	}
	c := b.dial().say(hello)
	must(t, c.CloseWrite()) // says no more, and still hears
	if got := kinds(c.answer("generate")); got != "start delta message done" {
		t.Errorf("after half a close: %s", got)
	}
	if got := kinds(b.dial().say(hello + "\n" + hello).answer("generate")); got != "start delta message done" {
		t.Errorf("two requests: %s", got)
	}
}

func TestWrongRequests(t *testing.T) {
	b := serve(t, simple, nil)
	for line, want := range map[string]errdefs.Kind{
		`{"op":"generate"}`: errdefs.Invalid, `{"op":"fly"}`: errdefs.Invalid, `hello`: errdefs.Invalid, ``: errdefs.Invalid,
		strings.Replace(hello, "lab/x", "lab/y", 1): errdefs.NotFound, strings.Replace(hello, "lab/x", "lob/x", 1): errdefs.NotFound,
		strings.Repeat(" ", libctx.MaxModelFrame): errdefs.TooBig,
	} {
		c := b.dial()
		c.Write([]byte(line + "\n")) // a long one is refused before it is read
		if f := c.fails("generate"); f.Code != want || f.Phase != modelwire.PhasePreSend || f.Class != modelwire.ClassInvalid || f.Accepted || f.GenerationSeen {
			t.Errorf("%.80q: %+v", line, f)
		}
	}
	c := b.dial()
	_, err := c.Write([]byte(`{"op":`))
	must(t, err)
	must(t, c.CloseWrite())
	if f := c.fails("generate"); f.Code != errdefs.Invalid {
		t.Errorf("torn: %+v", f)
	}
	c = b.dial()
	must(t, c.CloseWrite())
	if _, err := c.lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("who asks nothing hears nothing: %v", err)
	}
}

func TestClosingCancels(t *testing.T) {
	began, over := make(chan struct{}), make(chan error, 1)
	b := serve(t, func(ctx context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
		err := out.Send(&modelwire.Start{Model: g.Model})
		close(began)
		<-ctx.Done()
		over <- context.Cause(ctx)
		return errors.Join(err, ctx.Err())
	}, nil)
	c := b.dial().say(hello)
	<-began
	must(t, c.CloseWrite())
	select {
	case err := <-over:
		t.Fatalf("half a close ended the request: %v", err)
	default:
	}
	must(t, c.Close())
	if err := await(t, over); !errors.Is(err, errGone) {
		t.Error(err)
	}
}

func await(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("nothing comes")
		return nil
	}
}

// A client that does not read stops its own request alone.
func TestSlowReader(t *testing.T) {
	began, over := make(chan struct{}), make(chan error, 1)
	b := serve(t, func(_ context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
		err := out.Send(&modelwire.Start{Model: g.Model})
		close(began)
		for n := 0; err == nil && n < 300; n++ {
			err = out.Send(&modelwire.Delta{Text: strings.Repeat("a", 64<<10)})
		}
		over <- err
		return err
	}, nil)
	c := b.dial().say(hello)
	<-began
	if got := kinds(b.dial().say(strings.Replace(hello, "lab/x", "debug/echo", 1)).answer("generate")); got != "start delta message done" {
		t.Errorf("beside it: %s", got)
	}
	select {
	case err := <-over:
		t.Errorf("it wrote on: %v", err)
	default:
	}
	must(t, c.Close())
	if err := await(t, over); err == nil {
		t.Error("it wrote everything to nobody")
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	began := make(chan struct{})
	b := serve(t, func(ctx context.Context, _ *provider.Provider, _ provider.Secret, _ *modelwire.Generate, _ Sink) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}, nil)
	var held []*client
	for range libctx.MaxModelConnections {
		held = append(held, b.dial().say(hello))
		<-began
	}
	if f := b.dial().fails("generate"); f.Code != errdefs.Busy || f.Class != modelwire.ClassOverloaded || f.Phase != modelwire.PhasePreSend {
		t.Errorf("%+v", f)
	}
	for _, c := range held {
		c.Close()
	}
}

// Who is somebody else is refused before a byte of his is read.
func TestStrangers(t *testing.T) {
	b := serve(t, simple, nil)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	ours, theirs := conn(t, fds[0]), conn(t, fds[1])
	c := newClient(t, ours).say(hello)
	b.converse(context.Background(), theirs, peercred.Peer{UID: 65534, PID: 1}, false)
	if f := c.fails("generate"); f.Code != errdefs.Denied || f.Class != modelwire.ClassPolicy {
		t.Errorf("%+v", f)
	}
	if os.Geteuid() != 0 {
		return // nobody else can be tried for real
	}
	must(t, os.Chmod(b.socket, 0o666))
	refused := make(chan modelwire.Failure)
	go func() {
		// The thread has another user from here to its end.
		runtime.LockOSThread()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 60001, 60001, 60001); errno != 0 {
			t.Error(errno)
		}
		refused <- b.dial().fails("generate")
	}()
	if f := <-refused; f.Code != errdefs.Denied || !strings.Contains(f.Message, "60001") {
		t.Errorf("%+v", f)
	}
}

func conn(t *testing.T, fd int) *net.UnixConn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "pair")
	defer f.Close()
	c, err := net.FileConn(f)
	must(t, err)
	return c.(*net.UnixConn)
}

func TestServeOne(t *testing.T) {
	b := serve(t, simple, nil)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	ours, theirs := conn(t, fds[0]), conn(t, fds[1])
	var served sync.WaitGroup
	served.Go(func() {
		if err := b.ServeOne(context.Background(), theirs); err != nil {
			t.Error(err)
		}
	})
	if got := kinds(newClient(t, ours).say(hello).answer("generate")); got != "start delta message done" {
		t.Error(got)
	}
	served.Wait()
}

func TestIdle(t *testing.T) {
	began := make(chan struct{})
	b := serve(t, func(ctx context.Context, _ *provider.Provider, _ provider.Secret, _ *modelwire.Generate, _ Sink) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}, func(s *Server) { s.Idle = time.Millisecond })
	b.wait() // nobody came
	_, err := unixsock.Dial(context.Background(), b.socket)
	if !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("after the end: %v", err)
	}

	b = serve(t, simple, func(s *Server) { s.Idle = 100 * time.Millisecond })
	if got := kinds(b.dial().say(hello).answer("generate")); got != "start delta message done" {
		t.Error(got)
	}
	b.wait()
}

// At its end it lets requests finish, and gives up those that do not.
func TestDrain(t *testing.T) {
	began, gate := make(chan struct{}), make(chan struct{})
	waits := func(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error {
		close(began)
		select {
		case <-gate:
			return simple(ctx, p, key, g, out)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b := serve(t, waits, nil)
	c := b.dial().say(hello)
	<-began
	b.stop()
	close(gate)
	if got := kinds(c.answer("generate")); got != "start delta message done" {
		t.Error(got)
	}
	b.wait()

	began, gate = make(chan struct{}), nil
	b = serve(t, waits, func(s *Server) { s.Drain = time.Millisecond })
	c = b.dial().say(hello)
	<-began
	b.stop()
	if f := c.fails("generate"); f.Code != errdefs.Interrupted || f.Class != modelwire.ClassInterrupted || !f.Accepted {
		t.Errorf("%+v", f)
	}
	b.wait()
}
