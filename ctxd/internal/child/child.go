// Package child starts programs of the suite so that they end when this process
// does, however it ends.
package child

import (
	"os"
	"runtime"
	"syscall"

	"cortexfs.org/libctx/errdefs"
)

// Program is what to start. Its standard input is empty, its two outputs are our
// standard error, and File is its descriptor 3; it inherits no other.
type Program struct {
	Argv []string // argv[0] a path
	Env  []string
	File *os.File
}

// Starter starts programs: the kernel ties the parent-death signal to the thread
// that forked, so all of them come from one goroutine that keeps its thread until
// the last has ended. Make it with NewStarter.
type Starter struct{ requests chan request }

type request struct {
	program Program
	reply   chan<- started
}

type started struct {
	p   *os.Process
	err error
}

// NewStarter makes a starter; Close it when every program it started has ended.
func NewStarter() *Starter {
	s := &Starter{make(chan request)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			p, err := start(r.program)
			r.reply <- started{p, err}
		}
	}()
	return s
}

// Start starts a program. The caller waits for its end.
func (s *Starter) Start(p Program) (*os.Process, error) {
	reply := make(chan started, 1)
	s.requests <- request{p, reply}
	r := <-reply
	return r.p, r.err
}

// Close ends the starter.
func (s *Starter) Close() { close(s.requests) }

func start(p Program) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "start %s: %w", p.Argv[0], err)
	}
	defer null.Close()
	env := p.Env
	if env == nil {
		env = []string{} // nil would be our own
	}
	process, err := os.StartProcess(p.Argv[0], p.Argv, &os.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []*os.File{null, os.Stderr, os.Stderr, p.File},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true},
	})
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "start %s: %w", p.Argv[0], err)
	}
	return process, nil
}
