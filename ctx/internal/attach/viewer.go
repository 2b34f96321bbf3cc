package attach

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// viewer shows one terminal on another, over one connection after the other:
// a new picture is had by connecting again.
type viewer struct {
	Options
	watch   bool
	tty     *tty
	keys    scanner
	signals <-chan os.Signal
	typed   chan []byte // what was typed; closed when the terminal is gone

	// Of the connection that there is.
	conn  *conn
	ended chan result // of the goroutine that draws, once

	stuck bool // the person's terminal takes nothing any more: it is not written to

	mu    sync.Mutex
	shown bool          // the person's own text is out of the way
	tints colours       // what of the person's a program has coloured
	size  termwire.Size // of the terminal that is shown
}

// result is how the drawing of one connection ended.
type result struct {
	end End
	err error
}

// after is what follows a connection.
type after int

const (
	over    after = iota
	again         // connect again, for a new picture
	help          // and say before what the keys are
	suspend       // and stop this process before
	taken         // somebody else had the terminal: its modes are set again too
)

// gone is the end of who has no terminal any more.
var gone = result{err: errdefs.New(errdefs.Cancelled, "the terminal is gone")}

// signalled is the end by a signal.
func signalled(s os.Signal) result {
	return result{err: errdefs.New(errdefs.Cancelled, "ended by a signal: %v", s)}
}

// patience is how long a terminal may take to take the last of what is drawn.
const patience = 2 * time.Second

func (v *viewer) run(ctx context.Context) (End, error) {
	if err := v.connect(ctx); err != nil {
		return End{}, err // nothing was touched
	}
	if err := v.tty.raw(); err != nil {
		v.conn.close()
		return End{}, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
	}
	defer func() { // in a panic too
		v.reset()
		v.tty.restore()
	}()
	v.typed = make(chan []byte)
	quit, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		v.read(quit)
	}()
	defer func() {
		close(quit)
		v.tty.stop()
		<-read
	}()
	for {
		v.ended = make(chan result, 1)
		go v.drawing(v.conn, v.ended)
		next, r := v.follow(ctx)
		if next == over {
			return r.end, r.err
		}
		switch next {
		case help:
			if back, r := v.help(ctx); !back {
				return r.end, r.err
			}
		case suspend:
			v.reset()
			v.tty.restore()
			unix.Kill(os.Getpid(), unix.SIGSTOP)
			v.shown = false // what was written meanwhile is the person's
			if err := v.continued(ctx); err != nil {
				return End{}, err
			}
		case taken:
			if err := v.tty.raw(); err != nil {
				return End{}, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
			}
			v.reset()
			v.shown = false
		}
		if err := v.connect(ctx); err != nil {
			return End{}, err
		}
	}
}

// continued waits until this process goes on and has the terminal again.
func (v *viewer) continued(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case s := <-v.signals:
			switch s {
			case unix.SIGWINCH, unix.SIGTSTP:
			case unix.SIGCONT:
				if err := v.tty.raw(); err != nil {
					return errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
				}
				return nil
			default:
				return signalled(s).err
			}
		}
	}
}

// read passes on what is typed until quit is closed or the terminal is gone.
func (v *viewer) read(quit <-chan struct{}) {
	if !v.tty.typing {
		return
	}
	for {
		b := make([]byte, 16<<10)
		n, err := v.tty.read(b)
		if err != nil {
			close(v.typed)
			return
		}
		if n == 0 {
			return
		}
		select {
		case v.typed <- b[:n]:
		case <-quit:
			return
		}
	}
}

// connect connects. Nothing is drawn yet: the modes may not be set.
func (v *viewer) connect(ctx context.Context) error {
	term := v.Term
	if len(term) > libctx.MaxName {
		term = ""
	}
	lines := 0
	if !v.shown {
		lines = scrollback
	}
	var first termwire.Request = &termwire.Attach{Size: v.tty.size(), Term: term, Scrollback: lines}
	if v.watch {
		first = &termwire.Watch{Size: v.tty.size(), Term: term, Scrollback: lines}
	}
	var err error
	v.conn, err = dial(ctx, v.Options, first)
	return err
}

// drawing is draw in a goroutine of its own. A panic becomes an error, because
// the terminal has to be restored before this process ends.
func (v *viewer) drawing(c *conn, ended chan<- result) {
	defer func() {
		if p := recover(); p != nil {
			ended <- result{err: errdefs.New(errdefs.Internal, "panic: %v\n%s", p, debug.Stack())}
		}
	}()
	end, err := v.draw(c)
	ended <- result{end, err}
}

// draw shows what the terminal sends, until the program or the connection ends.
func (v *viewer) draw(c *conn) (End, error) {
	v.resized(c.hello.Size)
	for {
		f, err := c.next()
		if err != nil {
			return End{}, lost(v.Options, c, err)
		}
		switch f := f.(type) {
		case *termwire.Screen:
			v.resized(f.Size)
			err = v.write(f.Data)
		case *termwire.Bytes:
			err = v.write(f.Data)
		case *termwire.Resized:
			v.resized(f.Size)
		case *termwire.Error:
			c.last = f
		case *termwire.Exit:
			return End{Code: f.Code}, nil
		}
		if err != nil {
			return End{}, errdefs.New(errdefs.KindOf(err), "terminal: %w", err)
		}
	}
}

func (v *viewer) resized(s termwire.Size) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.size = s
}

// What is put aside of the person's terminal, and taken back: the title of the
// window, and whether a wheel turns cursor keys, which terminals begin with as
// they please.
const (
	putAside = "\x1b[22;0t\x1b[?1007s"
	takeBack = "\x1b[23;0t\x1b[?1007r"
)

// write draws. The first time the person's own text is scrolled out of the way.
func (v *viewer) write(b []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.shown {
		v.shown = true
		lines := make([]byte, 0, libctx.MaxTermSide+len(putAside)+1)
		lines = append(lines, putAside+"\r"...)
		for range v.tty.size().Rows { // from where the cursor is: what was written above it, and no more
			lines = append(lines, '\n')
		}
		if _, err := v.Out.Write(lines); err != nil {
			return err
		}
	}
	v.tints.see(b)
	_, err := v.Out.Write(b)
	return err
}

// follow sees one connection through, and says what comes after it.
func (v *viewer) follow(ctx context.Context) (after, result) {
	leave := func(next after, r result) (after, result) {
		v.conn.request(&termwire.Detach{})
		v.conn.close()
		select {
		case <-v.ended:
			return next, r
		case <-time.After(patience):
			v.stuck = true
			return over, r
		}
	}
	for {
		select {
		case r := <-v.ended:
			v.conn.close()
			return over, r
		case <-ctx.Done():
			return leave(over, result{err: context.Cause(ctx)})
		case typed, ok := <-v.typed:
			if !ok {
				return leave(over, gone)
			}
			switch v.input(typed) {
			case leaving:
				return leave(over, result{end: End{Left: true}})
			case explain:
				return leave(help, result{})
			}
		case s := <-v.signals:
			switch s {
			case unix.SIGWINCH:
				if v.watch {
					return leave(again, result{})
				}
				v.conn.request(&termwire.Resize{Size: v.tty.size()})
			case unix.SIGTSTP:
				return leave(suspend, result{})
			case unix.SIGCONT: // after a SIGSTOP, of which nobody is told
				return leave(taken, result{})
			default:
				return leave(over, signalled(s))
			}
		}
	}
}

// input sends what was typed on, up to the first command of the client.
func (v *viewer) input(typed []byte) command {
	for len(typed) > 0 {
		out, c, rest := v.keys.scan(nil, typed)
		if c == unknown || len(out) > 0 && !v.conn.request(&termwire.Input{Data: out}) {
			v.bell()
		}
		if c == leaving || c == explain {
			return c
		}
		typed = rest
	}
	return nothing
}

// bell says that something that was typed went nowhere.
func (v *viewer) bell() {
	if v.mu.TryLock() { // not while the terminal is busy
		defer v.mu.Unlock()
		v.Out.WriteString("\a")
	}
}

// reset ends what was shown: modes as a shell wants them, the cursor below the
// picture.
func (v *viewer) reset() {
	if v.stuck {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.shown {
		return
	}
	row := min(v.size.Rows, v.tty.size().Rows)
	fmt.Fprintf(v.Out, "%s\x1b[%d;1H\r\n", termwire.ResetSequence+v.tints.back()+takeBack, row)
}
