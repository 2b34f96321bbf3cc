package cli

import (
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"cortexfs.org/ctxterm/internal/filter"
	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/ctxterm/internal/ptyproc"
	"cortexfs.org/ctxterm/internal/screen"
	"cortexfs.org/ctxterm/internal/server"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// defaultProgram is what a terminal of an agent runs.
const defaultProgram = "/ctx/bin/tsh"

// seal keeps others of this user out of this process, whose descriptors the
// program has no right to, and keeps those from the program.
func seal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return errdefs.New(errdefs.KindOf(err), "close this process to others: %w", err)
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return errdefs.New(errdefs.KindOf(err), "keep descriptors from the program: %w", err)
	}
	return nil
}

// passed is the descriptor that fd:N names, nil for a path.
func passed(flag, value string) (*os.File, error) {
	number, ok := strings.CutPrefix(value, "fd:")
	if !ok {
		return nil, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 3 || strconv.Itoa(n) != number {
		return nil, errdefs.New(errdefs.Invalid, "--%s %.40q: N of fd:N is not a number from 3", flag, value)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "--%s %s: %w", flag, value, err)
	}
	return os.NewFile(uintptr(n), value), nil
}

// listen makes or takes over the socket, and says who may connect to it. A
// terminal whose socket is passed to it is meant to run in a sandbox.
func listen(value string) (*unixsock.Listener, server.Guard, error) {
	uid := uint32(os.Getuid())
	switch f, err := passed("listen", value); {
	case err != nil:
		return nil, nil, err
	case f != nil:
		l, err := unixsock.Inherit(f)
		return l, server.Outside(uid), err
	}
	l, err := unixsock.Listen(value, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	return l, server.Beside(uid), err
}

// resource opens the directory of the terminal's record and tells the terminal's
// id, which is its name or in its meta.json.
func resource(value string) (dir *os.File, id string, err error) {
	if value == "" {
		return nil, "", nil
	}
	if dir, err = passed("dir", value); err == nil && dir == nil {
		dir, err = os.OpenFile(value, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		id = filepath.Base(value)
	}
	if err != nil {
		return nil, "", errdefs.New(errdefs.KindOf(err), "--dir: %w", err)
	}
	return dir, id, nil
}

// serve runs a program on a terminal with a socket.
func serve(c *cli.Context, std Streams) (int, error) {
	if err := seal(); err != nil {
		return 0, err
	}
	size := termwire.DefaultSize
	if flag := c.String("size"); flag != "" {
		var err error
		if size, err = termwire.ParseSize(flag); err != nil {
			return 0, err
		}
	}
	listener, guard, err := listen(c.String("listen"))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	dir, id, err := resource(c.String("dir"))
	if err != nil {
		return 0, err
	}
	if dir != nil {
		defer dir.Close()
	}
	argv := c.Args().Slice()
	if len(argv) == 0 {
		argv = []string{defaultProgram}
	}
	stops := make(chan os.Signal, 4)
	signal.Notify(stops, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(stops)
	if err := ptyproc.Adopt(); err != nil {
		return 0, err
	}
	p, err := start(ptyproc.Config{Argv: argv, Env: withTerm(std.Env), Size: size})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	t := terminal{p: p, listener: listener, guard: guard, stops: stops}
	t.mux = mux.New(mux.Config{
		ID: id, Size: size, Program: p, Filter: &filter.Filter{Clipboard: c.Bool("clipboard")}, Recorder: unrecorded{},
		Screen: func(size termwire.Size, reply func([]byte)) mux.Screen {
			return screen.New(size, screen.Options{Scrollback: libctx.MaxTermScrollback, Reply: reply})
		},
	})
	return t.run(std.Err)
}

// terminal is a running one.
type terminal struct {
	p        *ptyproc.Proc
	mux      *mux.Mux
	listener *unixsock.Listener
	guard    server.Guard
	stops    <-chan os.Signal
}

// run serves until the program has ended, everything it printed is recorded and
// its clients have it too.
func (t *terminal) run(problems *os.File) (int, error) {
	done := make(chan struct{})
	defer close(done)
	go t.p.Tend(done)
	go func() {
		select {
		case <-t.stops:
			t.p.HangUp()
		case <-done:
		}
	}()
	s := server.New(server.Config{
		Listener: t.listener, Guard: t.guard, Mux: t.mux,
		Signal: func(sig syscall.Signal) { t.p.SignalForeground(sig) },
	})
	serving := make(chan error, 1)
	go func() {
		err := s.Serve()
		if err != nil {
			fmt.Fprintf(problems, "ctxterm: no more clients: %v\n", err)
		}
		serving <- err
	}()
	status, err := t.p.Run(t.mux)
	t.mux.End(status)
	s.Finish()
	<-serving
	t.mux.Close()
	return status, err
}

// unrecorded is the recorder of a terminal without a directory.
type unrecorded struct{}

func (unrecorded) Wait()                {}
func (unrecorded) Output([]byte)        {}
func (unrecorded) Resize(termwire.Size) {}
func (unrecorded) Exit(int)             {}
