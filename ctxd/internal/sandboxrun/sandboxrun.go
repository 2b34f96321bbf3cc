// Package sandboxrun starts programs in sandboxes and ends them. It is the only
// package of the daemon that starts processes inside one, and there is no way
// around bubblewrap: without it nothing starts.
//
// A payload comes in two steps. A launch makes a sandbox up to its entry step,
// which waits at a socket; a request makes that step the payload. So a sandbox
// can be launched before its call is known (spares), and what is not asked for
// runs nothing.
//
// Three facts of the kernel and of bubblewrap shape it. A parent-death signal
// follows the thread that forked, so one goroutine, locked to its thread,
// starts everything. A sandbox is over when its inner init is gone, not when
// bubblewrap is, so the init is what is registered, killed and waited for. And
// bubblewrap's gate opens at the end of its pipe, so a launch that is given up
// is killed first, and the entry step takes the end of its channel for a refusal.
package sandboxrun

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/seccomp"
)

// Config is what a Launcher needs to know of the host.
type Config struct {
	Bwrap string      // bubblewrap; "" looks in a fixed list of places, never in PATH
	Entry string      // ctxtool on the host: its first step inside every sandbox; also what Spec.Tools is if empty
	Log   *log.Logger // nil logs nothing
}

// Stdio is what a payload reads and where its output goes.
type Stdio struct {
	Stdin          []byte    // all of it; none reads /dev/null
	Stdout, Stderr io.Writer // each called from one goroutine; nil discards; must not block for long
	// Pass become 3, 4, … of the payload, at most libctx.MaxSandboxPassed, and of
	// nothing else in the sandbox. They stay the caller's.
	Pass []*os.File
	// Grace is how long the payload has from SIGTERM until its sandbox is killed;
	// 0 is libctx.TermGrace. With another its output is wanted to the end.
	Grace time.Duration
	// Started, if set, is told the first process of the sandbox before anything
	// of the payload runs, and again if another sandbox takes its place. An
	// error gives the launch up and is returned.
	Started func(procid.ID) error
}

// Result is how a payload ended.
type Result struct {
	ExitCode int           // 128 + n for a death by signal n
	Duration time.Duration // from the call of Run until nothing of the sandbox was left
}

// Launcher starts sandboxes. Its methods may be called from any goroutine.
type Launcher struct {
	bwrap, entry string
	host         sandbox.Host
	filter       []byte // seccomp.Filter
	log          *log.Logger
	starts       chan start // to the one goroutine that starts processes

	life context.Context // done once Close was called
	end  context.CancelCauseFunc

	spares spares

	mu     sync.Mutex
	closed bool
	runs   sync.WaitGroup // Runs that have not returned, spares, and the sweep; grows only under mu
}

// New looks at the host once, tries a launch, and returns a launcher; the
// caller closes it. errdefs.Unavailable names what is missing and, as its hint,
// what to do about it.
func New(cfg Config) (*Launcher, error) {
	l := &Launcher{entry: cfg.Entry, log: cfg.Log, starts: make(chan start)}
	if l.log == nil {
		l.log = log.Discard()
	}
	var err error
	if l.bwrap, err = findBwrap(cfg.Bwrap); err != nil {
		return nil, err
	}
	if err := checkEntry(cfg.Entry); err != nil {
		return nil, err
	}
	if l.filter, err = seccomp.Filter(); err != nil {
		return nil, err
	}
	l.host = probeHost()
	l.spares.launcher, l.spares.idle = l, libctx.SandboxSpare
	l.life, l.end = context.WithCancelCause(context.Background())
	confined := make(chan confinement, 1)
	go startAll(l.starts, confined)
	switch c := <-confined; {
	case c.err != nil:
		close(l.starts)
		return nil, c.err
	case !c.abstract:
		l.log.Debug("sandboxes with the network reach abstract sockets of the host: the kernel has no Landlock scopes")
	}
	l.runs.Go(sweep)
	// Both at once: whoever waits for the first answer of an agent waits for this
	// too. A version that is too old fails both; the options say it better.
	options := make(chan error, 1)
	go func() { options <- checkOptions(l.bwrap) }()
	err = l.try()
	if old := <-options; old != nil {
		err = old
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	l.spares.on = true
	return l, nil
}

// Check tells whether New would succeed: its error, for people who ask what is
// wrong with this machine.
func Check(cfg Config) error {
	l, err := New(cfg)
	if err != nil {
		return err
	}
	return l.Close()
}

// errClosed ends what still runs when a launcher is closed.
var errClosed = errdefs.New(errdefs.Cancelled, "the launcher was closed")

// Close ends everything that runs, as a cancel would, and waits until it is
// gone. Later Runs are refused with errdefs.Unavailable. Closing twice is fine.
func (l *Launcher) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	l.end(errClosed)
	l.runs.Wait()
	if first {
		// Only now may the starting thread end: sandboxes die with it.
		close(l.starts)
	}
	return nil
}

// enter counts a Run in and makes its context end with the launcher.
func (l *Launcher) enter(ctx context.Context) (context.Context, func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, errdefs.New(errdefs.Unavailable, "sandbox: the launcher is closed")
	}
	l.runs.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(context.Cause(l.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
		l.runs.Done()
	}, nil
}
