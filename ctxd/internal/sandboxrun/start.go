package sandboxrun

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"cortexfs.org/ctxd/internal/privilege"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
)

// start asks for one process.
type start struct {
	path  string
	argv  []string
	attr  *os.ProcAttr
	reply chan<- answer // of size 1
}

// confinement is what privilege.Confine returned.
type confinement struct {
	abstract bool
	err      error
}

type answer struct {
	proc *os.Process
	err  error
}

// startAll starts every process, from one thread that stays until the last of
// them is gone: the kernel sends the parent-death signal when the thread that
// forked ends, whatever becomes of the process around it. The thread confines
// itself first, and with it everything; confined gets the outcome.
func startAll(starts <-chan start, confined chan<- confinement) {
	runtime.LockOSThread() // and never unlocked
	var c confinement
	if !fault.Off("sandbox:confine") {
		c.abstract, c.err = privilege.Confine()
	}
	confined <- c
	for s := range starts {
		proc, err := os.StartProcess(s.path, s.argv, s.attr)
		s.reply <- answer{proc, err}
	}
}

// start starts bwrap with the descriptors of a launch and an empty environment:
// what is in its own would be readable inside, in /proc/1/environ.
func (l *Launcher) start(id asuser.Identity, argv []string, files []*os.File) (*os.Process, error) {
	// A group of its own: it can be killed as one before its first process is
	// known, and a terminal's Ctrl+C does not reach it. No parent-death signal:
	// bwrap arms its own, and one that kills bwrap while its child still waits
	// for its user id map would leave that child waiting for ever. If we die
	// before bwrap has armed it, the entry step misses its token.
	sys := &syscall.SysProcAttr{Setpgid: true}
	if !id.IsSelf() {
		sys.Credential = &syscall.Credential{Uid: id.UID, Gid: id.GID, Groups: id.Groups}
	}
	reply := make(chan answer, 1)
	l.starts <- start{l.bwrap, argv, &os.ProcAttr{Dir: "/", Env: weakEnviron(), Files: files, Sys: sys}, reply}
	s := <-reply
	if s.err != nil {
		kind := errdefs.Unavailable
		switch k := errdefs.KindOf(s.err); {
		case errors.Is(s.err, syscall.E2BIG):
			kind = errdefs.Invalid
		case k == errdefs.Busy, k == errdefs.Denied, k == errdefs.Invalid:
			kind = k
		}
		return nil, errdefs.New(kind, "sandbox: start %s: %w", l.bwrap, s.err)
	}
	return s.proc, nil
}
