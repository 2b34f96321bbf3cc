package cli

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"cortexfs.org/ctxterm/internal/journal"
	"cortexfs.org/ctxterm/internal/mux"
	"cortexfs.org/ctxterm/internal/ptyproc"
	"cortexfs.org/ctxterm/internal/screen"
	"cortexfs.org/ctxterm/internal/server"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
)

// terminal is one with a socket.
type terminal struct {
	config   mux.Config // without Program and Screen
	record   *journal.Journal
	listener *unixsock.Listener
	guard    server.Guard
	problems *os.File
}

// run serves the terminal of a program until that has ended, everything it
// printed is durable, and its clients have it too.
func (t *terminal) run(p *ptyproc.Proc, stops <-chan os.Signal) (int, error) {
	t.config.Program = p
	t.config.Screen = func(size termwire.Size, reply func([]byte)) mux.Screen {
		return screen.New(size, screen.Options{Scrollback: libctx.MaxTermScrollback, Reply: reply})
	}
	m := mux.New(t.config)
	s := server.New(server.Config{
		Listener: t.listener, Guard: t.guard, Mux: m,
		Signal: func(sig syscall.Signal) { p.SignalForeground(sig) },
	})
	done := make(chan struct{})
	var sides sync.WaitGroup
	sides.Go(func() { p.Tend(done) })
	sides.Go(func() {
		select {
		case <-stops:
			p.HangUp()
		case <-done:
		}
	})
	sides.Go(func() {
		if err := s.Serve(); err != nil {
			t.say("no more clients", err)
		}
	})
	status, err := p.Run(m)
	m.End(status)
	if t.record != nil {
		t.record.Close() // a failure was told when it happened
	}
	s.Finish()
	m.Close()
	close(done)
	sides.Wait()
	return status, err
}

// unrecordable says that the disk has failed the record.
func (t *terminal) unrecordable(err error) { t.say("no more is recorded", err) }

func (t *terminal) say(what string, err error) {
	fmt.Fprintf(t.problems, "ctxterm: %s: %v\n", what, err)
}

// unrecorded is the recorder of a terminal without a directory.
type unrecorded struct{}

func (unrecorded) Wait()                {}
func (unrecorded) Output([]byte)        {}
func (unrecorded) Resize(termwire.Size) {}
func (unrecorded) Exit(int)             {}
