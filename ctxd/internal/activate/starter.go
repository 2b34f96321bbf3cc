package activate

import (
	"os"
	"runtime"
	"syscall"

	"cortexfs.org/libctx/errdefs"
)

// starter starts servers so that they end when we do, however we end: the
// kernel ties the parent-death signal to the thread that forked, so all of them
// come from one goroutine that keeps its thread until the last has ended.
type starter struct {
	requests chan request
	env      []string
}

type request struct {
	argv   []string
	socket *os.File
	reply  chan<- started
}

type started struct {
	p   *os.Process
	err error
}

func newStarter(env []string) *starter {
	s := &starter{make(chan request), append(env, "LISTEN_FDS=1")}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			p, err := start(r.argv, s.env, r.socket)
			r.reply <- started{p, err}
		}
	}()
	return s
}

// start starts argv with the socket as descriptor 3.
func (s *starter) start(argv []string, socket *os.File) (*os.Process, error) {
	reply := make(chan started, 1)
	s.requests <- request{argv, socket, reply}
	r := <-reply
	return r.p, r.err
}

// close ends the starter; every server it started must have ended.
func (s *starter) close() { close(s.requests) }

func start(argv, env []string, socket *os.File) (*os.Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "start %s: %w", argv[0], err)
	}
	defer null.Close()
	p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []*os.File{null, os.Stderr, os.Stderr, socket},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true},
	})
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "start %s: %w", argv[0], err)
	}
	return p, nil
}
