package attach

import (
	"context"
	"io"
	"os"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// Options says which terminal is shown where.
type Options struct {
	Name    string   // AGENT/SESSION, for people
	Sockets []string // where it may listen, in the order in which they are tried
	Hint    string   // what to do if nothing listens
	Term    string   // type of the person's terminal, for information
	Key     Key      // begins commands of the client
	In, Out *os.File
	// Signals delivers SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP and
	// SIGCONT for as long as the program lives.
	Signals func() <-chan os.Signal
}

// End is how it came to an end.
type End struct {
	Left bool // the person went; the program lives
	Code int  // else the exit code of the program
}

// scrollback is how many lines above the first picture a person gets.
const scrollback = 500

// Attach shows the terminal on Out and types into it what comes from In, which
// both are terminals of the person, until the program ends or the person leaves.
// A terminal that is not there, or whose connection ends before its program, is
// errdefs.Unavailable; one that lets nobody in from here errdefs.Denied. A signal
// that asks this process to end is errdefs.Cancelled.
func Attach(ctx context.Context, o Options) (End, error) { return show(ctx, o, false) }

// Watch is Attach that types nothing: q, Ctrl+C and the commands of Key leave. In
// need not be a terminal.
func Watch(ctx context.Context, o Options) (End, error) { return show(ctx, o, true) }

func show(ctx context.Context, o Options, watch bool) (End, error) {
	signals := o.Signals() // before the terminal has other modes, which a signal gives back
	t, err := open(o.In, o.Out)
	if err != nil {
		return End{}, err
	}
	defer t.close()
	v := &viewer{Options: o, watch: watch, tty: t, keys: scanner{key: o.Key, watch: watch}, signals: signals}
	return v.run(ctx)
}

// Pipe copies what the terminal shows from now on to out, byte for byte, until
// the program ends, out fails, or ctx is over.
func Pipe(ctx context.Context, o Options, out io.Writer, lagged func()) (End, error) {
	c, err := dial(ctx, o, &termwire.Watch{})
	if err != nil {
		return End{}, err
	}
	stop := context.AfterFunc(ctx, func() { c.sock.Close() })
	defer stop()
	defer c.close()
	for {
		f, err := c.next()
		if ctx.Err() != nil {
			return End{}, context.Cause(ctx)
		}
		if err != nil {
			return End{}, lost(o, c, err)
		}
		switch f := f.(type) {
		case *termwire.Bytes:
			if _, err := out.Write(f.Data); err != nil {
				return End{}, err
			}
		case *termwire.Lagged:
			lagged()
		case *termwire.Error:
			c.last = f
		case *termwire.Exit:
			return End{Code: f.Code}, nil
		}
	}
}

// lost is why a connection ended before the program did.
func lost(o Options, c *conn, err error) error {
	if c.last != nil {
		return errdefs.New(c.last.Code, "terminal %s: %s", o.Name, c.last.Message)
	}
	return errdefs.New(errdefs.KindOf(err), "terminal %s: %w", o.Name, err).WithHint("ctx terminal status %s says what became of it", o.Name)
}

// GoneReader is closed when nobody can read from the pipe behind f any more, so
// that a command that has nothing to write notices too. Of anything but a pipe it
// is never closed. The caller calls stop.
func GoneReader(f *os.File) (gone <-chan struct{}, stop func()) {
	c, over := make(chan struct{}), make(chan struct{})
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return c, func() {}
	}
	go func() {
		defer close(over)
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(wake), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); err == unix.EINTR {
				continue
			} else if err != nil || fds[1].Revents != 0 {
				return
			}
			if fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
				close(c)
				return
			}
		}
	}()
	return c, func() {
		unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-over
		unix.Close(wake)
	}
}
