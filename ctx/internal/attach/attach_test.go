package attach

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// person is somebody with a terminal of 80 to 24 in front of a fake terminal
// server.
type person struct {
	t       *testing.T
	ptmx    *os.File // what the person types and sees
	tty     *os.File // what the client has
	cooked  unix.Termios
	signals chan os.Signal
	sock    string
	listen  *net.UnixListener
	o       Options

	mu   sync.Mutex
	cond *sync.Cond
	seen []byte
}

func newPerson(t *testing.T) *person {
	t.Helper()
	p := &person{t: t, signals: make(chan os.Signal, 4), sock: filepath.Join(t.TempDir(), "s")}
	p.cond = sync.NewCond(&p.mu)
	var err error
	if p.ptmx, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	fd := int(p.ptmx.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	p.tty = os.NewFile(peer, "tty")
	p.resize(80, 24)
	mode, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	p.cooked = *mode
	if p.listen, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: p.sock}); err != nil {
		t.Fatal(err)
	}
	p.o = Options{
		Name: "coder/default", Sockets: []string{filepath.Join(t.TempDir(), "none"), p.sock}, Hint: "start it", Term: "vt100", Key: DefaultKey,
		In: p.tty, Out: p.tty, Signals: func() <-chan os.Signal { return p.signals },
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		b := make([]byte, 4096)
		for {
			n, err := p.ptmx.Read(b)
			p.mu.Lock()
			p.seen = append(p.seen, b[:n]...)
			p.cond.Broadcast()
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.listen.Close()
		p.tty.Close() // the reader above ends with the last descriptor
		<-over
		p.ptmx.Close()
	})
	return p
}

func (p *person) resize(cols, rows int) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) types(s string) {
	p.t.Helper()
	if _, err := p.ptmx.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the terminal got what, and returns all it got.
func (p *person) sees(what string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !bytes.Contains(p.seen, []byte(what)) {
		p.cond.Wait()
	}
	return string(p.seen)
}

// isCooked reports whether the modes are those of before.
func (p *person) isCooked() bool {
	mode, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS)
	return err == nil && *mode == p.cooked
}

// outcome is what a client returned.
type outcome struct {
	End
	err error
}

func (p *person) start(client func(context.Context, Options) (End, error)) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		end, err := client(context.Background(), p.o)
		c <- outcome{end, err}
	}()
	return c
}

// server is the other side of one connection.
type server struct {
	t     *testing.T
	c     net.Conn
	lines *wire.Lines
}

// accept takes the next connection; its first request has to be this.
func (p *person) accept(first termwire.Request) *server {
	p.t.Helper()
	c, err := p.listen.Accept()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	s := &server{p.t, c, wire.NewLines(c, libctx.MaxFrame)}
	s.gets(first)
	return s
}

func (s *server) gets(want termwire.Request) {
	s.t.Helper()
	line, err := s.lines.Next()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := termwire.MarshalRequest(want)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := string(line) + "\n"; got != string(text) {
		s.t.Fatalf("got %s, not %s", got, text)
	}
}

func (s *server) ends() {
	s.t.Helper()
	if line, err := s.lines.Next(); err == nil {
		s.t.Fatalf("got %s, not the end", line)
	}
}

func (s *server) sends(frames ...termwire.Frame) {
	s.t.Helper()
	for _, f := range frames {
		line, err := termwire.MarshalFrame(f)
		if err == nil {
			_, err = s.c.Write(line)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

var size = termwire.Size{Cols: 80, Rows: 24}

func firstAttach() termwire.Request {
	return &termwire.Attach{Size: size, Term: "vt100", Scrollback: scrollback}
}

func firstWatch() termwire.Request {
	return &termwire.Watch{Size: size, Term: "vt100", Scrollback: scrollback}
}

// begin accepts an attached client and shows it a picture.
func (p *person) begin() *server {
	p.t.Helper()
	s := p.accept(firstAttach())
	s.sends(&termwire.Hello{Protocol: 1, Mode: "attach", Size: size}, &termwire.Screen{Seq: 1, Size: size, Data: []byte("PICTURE")})
	p.sees("PICTURE")
	return s
}

func TestAttach(t *testing.T) {
	p := newPerson(t)
	p.types("") // the terminal is there before the client
	c := p.start(Attach)
	s := p.begin()
	if p.isCooked() {
		t.Error("keys are not raw")
	}
	p.types("ls\r\x03\x1a")
	s.gets(&termwire.Input{Data: []byte("ls\r\x03\x1a")})
	s.sends(&termwire.Bytes{Seq: 9, Data: []byte("README\xff\r\n")}, &termwire.Lagged{}, &termwire.Screen{Seq: 20, Size: size, Data: []byte("AGAIN")})
	p.sees("README\xff\r\nAGAIN") // no LF becomes two characters
	p.resize(100, 30)
	p.signals <- unix.SIGWINCH
	s.gets(&termwire.Resize{Size: termwire.Size{Cols: 100, Rows: 30}})
	s.sends(&termwire.Resized{Size: termwire.Size{Cols: 100, Rows: 20}}) // somebody else is smaller
	s.sends(&termwire.Bytes{Seq: 21, Data: []byte("NOW")})
	p.sees("NOW")
	p.types("\x1e\x1e\x1ed")
	s.gets(&termwire.Input{Data: []byte("\x1e")})
	s.gets(&termwire.Detach{})
	s.ends()
	if got := <-c; !got.Left || got.err != nil {
		t.Errorf("%+v", got)
	}
	if !p.isCooked() {
		t.Error("the modes are not as before")
	}
	seen := p.sees(takeBack + "\x1b[20;1H\r\n")
	if !strings.HasPrefix(seen, putAside+"\r"+strings.Repeat("\n", 24)+"PICTURE") || !strings.HasSuffix(seen, "NOW"+termwire.ResetSequence+takeBack+"\x1b[20;1H\r\n") {
		t.Errorf("the terminal saw %q", seen)
	}
}

// However it ends, the terminal is as it was.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*person, *server)
		want outcome
		kind errdefs.Kind
	}{
		"the program":    {func(_ *person, s *server) { s.sends(&termwire.Exit{Code: 3}); s.ends() }, outcome{End: End{Code: 3}}, ""},
		"the connection": {func(_ *person, s *server) { s.c.Close() }, outcome{}, errdefs.Unavailable},
		"the terminal says why": {func(_ *person, s *server) {
			s.sends(&termwire.Error{Code: errdefs.Denied, Message: "no"})
			s.c.Close()
		}, outcome{}, errdefs.Denied},
		"no language": {func(_ *person, s *server) { s.c.Write([]byte("hello\n")) }, outcome{}, errdefs.Protocol},
		"SIGTERM":     {func(p *person, s *server) { p.signals <- unix.SIGTERM; s.gets(&termwire.Detach{}) }, outcome{}, errdefs.Cancelled},
		"SIGHUP":      {func(p *person, s *server) { p.signals <- unix.SIGHUP; s.gets(&termwire.Detach{}) }, outcome{}, errdefs.Cancelled},
		"SIGINT":      {func(p *person, s *server) { p.signals <- unix.SIGINT; s.gets(&termwire.Detach{}) }, outcome{}, errdefs.Cancelled},
		"SIGQUIT":     {func(p *person, s *server) { p.signals <- unix.SIGQUIT; s.gets(&termwire.Detach{}) }, outcome{}, errdefs.Cancelled},
		"unknown frames go by": {func(_ *person, s *server) {
			s.c.Write([]byte(`{"type":"weather"}` + "\n"))
			s.sends(&termwire.Exit{})
		}, outcome{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPerson(t)
			client := p.start(Attach)
			s := p.begin()
			c.end(p, s)
			got := <-client
			if got.End != c.want.End || errdefs.KindOf(got.err) != c.kind {
				t.Errorf("%+v, %v", got.End, got.err)
			}
			p.sees("PICTURE" + termwire.ResetSequence + takeBack + "\x1b[24;1H\r\n")
			if !p.isCooked() {
				t.Error("the modes are not as before")
			}
		})
	}
}

// A terminal that can not be had is told before anything of the person's is
// touched.
func TestRefusals(t *testing.T) {
	p := newPerson(t)
	for name, c := range map[string]struct {
		answer string
		kind   errdefs.Kind
	}{
		"from inside":   {`{"type":"error","code":"EACCES","message":"the peer is inside"}` + "\n", errdefs.Denied},
		"no answer":     {"", errdefs.Unavailable},
		"other service": {"220 mail\n", errdefs.Protocol},
		"odd beginning": {`{"type":"lagged"}` + "\n", errdefs.Protocol},
	} {
		client := p.start(Attach)
		s := p.accept(firstAttach())
		s.c.Write([]byte(c.answer))
		s.c.Close()
		if got := <-client; errdefs.KindOf(got.err) != c.kind || !strings.Contains(got.err.Error(), "coder/default") {
			t.Errorf("%s: %v", name, got.err)
		} else if hint := errdefs.HintOf(got.err); c.kind == errdefs.Denied && !strings.Contains(hint, "inside of itself") {
			t.Errorf("%s: hint %q", name, hint)
		}
	}
	p.listen.Close()
	end, err := Attach(t.Context(), p.o)
	if !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(err.Error(), p.o.Sockets[0]+" or "+p.o.Sockets[1]) || errdefs.HintOf(err) != "start it" {
		t.Errorf("%+v, %v", end, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) > 0 || !p.isCooked() {
		t.Errorf("the terminal was touched: %q", p.seen)
	}
}

// A watcher sends nothing but that it goes; a new size is a new picture.
func TestWatch(t *testing.T) {
	p := newPerson(t)
	client := p.start(Watch)
	s := p.accept(firstWatch())
	s.sends(&termwire.Hello{Protocol: 1, Mode: "watch", Size: size}, &termwire.Screen{Size: size, Data: []byte("PICTURE")})
	p.sees("PICTURE")
	p.types("rm -rf /\r\x1b[M q!\x1bq")
	p.resize(100, 30)
	p.signals <- unix.SIGWINCH
	s.gets(&termwire.Detach{})
	s.ends()
	s = p.accept(&termwire.Watch{Size: termwire.Size{Cols: 100, Rows: 30}, Term: "vt100"})
	s.sends(&termwire.Hello{Protocol: 1, Mode: "watch", Size: size}, &termwire.Screen{Size: size, Data: []byte("LARGER")})
	p.sees("LARGER")
	p.types("q")
	s.gets(&termwire.Detach{})
	if got := <-client; !got.Left || got.err != nil || !p.isCooked() {
		t.Errorf("%+v", got)
	}
}

// A watcher whose input is no terminal shows the picture all the same, and keeps
// the keys that make signals.
func TestWatchWithoutKeys(t *testing.T) {
	p := newPerson(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p.o.In = null
	client := p.start(Watch)
	s := p.accept(firstWatch())
	s.sends(&termwire.Hello{Protocol: 1, Mode: "watch", Size: size}, &termwire.Screen{Size: size, Data: []byte("A\nPICTURE")})
	p.sees("A\nPICTURE")
	if mode, err := unix.IoctlGetTermios(int(p.tty.Fd()), unix.TCGETS); err != nil || mode.Lflag&unix.ISIG == 0 {
		t.Errorf("%v, %v", mode, err)
	}
	p.signals <- unix.SIGINT
	s.gets(&termwire.Detach{})
	if got := <-client; !errdefs.Is(got.err, errdefs.Cancelled) || !p.isCooked() {
		t.Errorf("%+v", got)
	}
}

func TestHelp(t *testing.T) {
	p := newPerson(t)
	client := p.start(Attach)
	s := p.begin()
	p.types("\x1e?")
	s.gets(&termwire.Detach{})
	p.sees("Any key goes back.")
	p.types("x")
	s = p.accept(&termwire.Attach{Size: size, Term: "vt100"})
	s.sends(&termwire.Hello{Protocol: 1, Mode: "attach", Size: size}, &termwire.Screen{Size: size, Data: []byte("BACK")})
	p.sees("BACK")
	p.types("\x1ex") // no command
	p.sees("BACK\a")
	p.types("y")
	s.gets(&termwire.Input{Data: []byte("y")})
	s.sends(&termwire.Exit{})
	if got := <-client; got.err != nil || got.Left {
		t.Errorf("%+v", got)
	}
}

// After SIGCONT, modes and picture are made anew: whoever had the terminal
// meanwhile set it for itself.
func TestContinue(t *testing.T) {
	p := newPerson(t)
	client := p.start(Attach)
	s := p.begin()
	if err := unix.IoctlSetTermios(int(p.tty.Fd()), unix.TCSETS, &p.cooked); err != nil {
		t.Fatal(err)
	}
	p.signals <- unix.SIGCONT
	s.gets(&termwire.Detach{})
	s = p.accept(firstAttach())
	s.sends(&termwire.Hello{Protocol: 1, Mode: "attach", Size: size}, &termwire.Screen{Size: size, Data: []byte("AGAIN")}, &termwire.Exit{Code: 143})
	p.sees(takeBack + "\x1b[24;1H\r\n" + putAside + "\r" + strings.Repeat("\n", 24) + "AGAIN") // the text of others is not drawn over
	if got := <-client; got.err != nil || got.Code != 143 || !p.isCooked() {
		t.Errorf("%+v", got)
	}
}

// A program that reads nothing does not keep anybody from leaving.
func TestBusyProgram(t *testing.T) {
	p := newPerson(t)
	client := p.start(Attach)
	s := p.begin()
	for range 16 { // more than the socket and the queue hold
		p.types(strings.Repeat("x", 2000))
		p.types("\x1ex") // answered with a bell once it was looked at
	}
	p.types("\x1ed")
	go func() { // what is queued has to go somewhere
		for {
			if _, err := s.lines.Next(); err != nil {
				return
			}
		}
	}()
	if got := <-client; !got.Left || got.err != nil || !p.isCooked() {
		t.Errorf("%+v", got)
	}
}

// A defect in the drawing becomes an error, which the terminal outlives.
func TestPanicIsAnError(t *testing.T) {
	ended := make(chan result, 1)
	(&viewer{}).drawing(&conn{}, ended)
	if r := <-ended; !errdefs.Is(r.err, errdefs.Internal) {
		t.Errorf("%v", r.err)
	}
}

func TestPipe(t *testing.T) {
	p := newPerson(t)
	var out bytes.Buffer
	lagged := 0
	client := make(chan outcome, 1)
	go func() {
		end, err := Pipe(t.Context(), p.o, &out, func() { lagged++ })
		client <- outcome{end, err}
	}()
	s := p.accept(&termwire.Watch{})
	s.sends(&termwire.Hello{Protocol: 1, Mode: "watch", Size: size}, &termwire.Bytes{Seq: 1, Data: []byte("a\xff")}, &termwire.Lagged{},
		&termwire.Bytes{Seq: 9, Data: []byte("b\r\n")}, &termwire.Exit{Code: 4})
	if got := <-client; got.err != nil || got.Code != 4 || out.String() != "a\xffb\r\n" || lagged != 1 {
		t.Errorf("%+v, %q, %d", got, out.String(), lagged)
	}
}

// Pipe ends with its context, and with a reader that goes away unseen.
func TestPipeEnds(t *testing.T) {
	p := newPerson(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	closed := errors.New("closed")
	client := make(chan outcome, 1)
	go func() {
		gone, stop := GoneReader(w)
		defer stop()
		go func() {
			<-gone
			cancel(closed)
		}()
		end, err := Pipe(ctx, p.o, w, func() {})
		client <- outcome{end, err}
	}()
	s := p.accept(&termwire.Watch{})
	s.sends(&termwire.Hello{Protocol: 1, Mode: "watch", Size: size}, &termwire.Bytes{Seq: 1, Data: []byte("x")})
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if got := <-client; !errors.Is(got.err, closed) {
		t.Errorf("%+v", got)
	}
	// Of what is no pipe nobody goes away.
	gone, stop := GoneReader(p.tty)
	stop()
	select {
	case <-gone:
		t.Error("a terminal is gone")
	default:
	}
}
