package sandboxrun

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// Run runs one payload in a sandbox that serves nothing else, and returns when
// its pid namespace is gone and its output has been read. A payload that ran is
// no error, whatever its exit code.
//
// When ctx is done the payload gets SIGTERM and, libctx.TermGrace later, the
// whole namespace SIGKILL; what it writes meanwhile reaches nobody (but see
// Stdio.Grace), and the error wraps the cause of ctx. An error of a writer kills the sandbox and is
// returned. A payload that never started is errdefs.Unavailable with bwrap's
// own message, or what the entry step refused it with: errdefs.Denied if a
// directory was exchanged, errdefs.NotFound, errdefs.Denied or errdefs.Invalid
// if it can not be executed. Arguments and environment over
// libctx.MaxSandboxRequest are errdefs.TooBig.
//
// After a payload that ran, a sandbox is prepared for the next one (Prepare);
// after a terminal none is expected.
func (l *Launcher) Run(ctx context.Context, s sandbox.Spec, stdio Stdio) (Result, error) {
	begun := time.Now()
	ctx, leave, err := l.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if ctx.Err() != nil {
		return Result{}, interrupted(ctx)
	}
	p, err := l.plan(s, len(stdio.Pass))
	if err != nil {
		return Result{}, err
	}
	defer p.close()
	n, prepared := l.spares.take(ctx, p.fixed)
	defer func() { l.spares.leave(s, p.fixed, err == nil && s.Kind != sandbox.Terminal) }()
	if !prepared {
		if n, err = l.launch(ctx, p, stdio.Started); err != nil {
			return Result{}, err
		}
	}
	handed := false
	tell := func() {
		handed = true
		fault.Point("sandbox.opened")
		l.log.Debug("sandbox started", "kind", s.Kind, "pid", n.id.PID, "prepared", prepared)
	}
	err = n.serve(ctx, p, stdio, tell)
	// What was exchanged while a sandbox was prepared may be back by now: only
	// its entry step sees that. It has executed nothing, and the call gets the
	// sandbox that it would have had without.
	if prepared && !handed && ctx.Err() == nil && (errdefs.Is(err, errdefs.Denied) || errdefs.Is(err, errdefs.Unavailable)) {
		n.close()
		prepared = false
		if n, err = l.launch(ctx, p, stdio.Started); err != nil {
			return Result{}, err
		}
		err = n.serve(ctx, p, stdio, tell)
	}
	defer n.close() // everything is gone
	if !handed {
		return Result{Duration: time.Since(begun)}, err
	}
	r := Result{ExitCode: n.exitCode(), Duration: time.Since(begun)}
	l.log.Debug("sandbox ended", "kind", s.Kind, "pid", n.id.PID, "exit", r.ExitCode, "duration", r.Duration)
	return r, err
}

// serve makes the first process known, asks the entry step for the payload, and
// follows that to its end; handed is called once the payload has the process.
// On return nothing of the sandbox is left.
func (n *launch) serve(ctx context.Context, p *plan, stdio Stdio, handed func()) error {
	err := n.tell(stdio.Started)
	if err == nil && ctx.Err() != nil {
		err = interrupted(ctx)
	}
	var s *streams
	if err == nil {
		s, err = newStreams(len(stdio.Stdin) > 0)
	}
	if err != nil {
		n.kill()
		<-n.over
		return err
	}
	defer s.close()

	stopped := make(chan struct{})
	disarm := context.AfterFunc(ctx, func() {
		defer close(stopped)
		n.stop(stdio.Grace)
	})
	defer func() {
		if !disarm() {
			<-stopped
		}
	}()
	if err := n.ask(p.request, s, stdio.Pass); err != nil {
		n.kill()
		<-n.over
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return n.explain(err)
	}
	handed()
	if err := n.follow(ctx, s, stdio); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return nil
}

// ready waits until the entry step waits for a request.
func (n *launch) ready(ctx context.Context) error {
	return untilDone(ctx, n.channel, func() error {
		said := make([]byte, len(sandbox.Ready))
		if _, err := io.ReadFull(n.channel, said); err != nil {
			return err
		}
		if string(said) != sandbox.Ready {
			return errdefs.New(errdefs.Unavailable, "the entry step said %q", said)
		}
		return nil
	})
}

// ask sends the one request and reads the answer to its end: the payload has the
// process by then, or nobody has. An entry step that has ended, whose channel
// takes nothing, may have left an answer too.
func (n *launch) ask(request []byte, s *streams, pass []*os.File) error {
	n.channel.SetDeadline(time.Now().Add(libctx.SandboxStart))
	fds := slices.Clone(s.theirs)
	for _, f := range pass {
		fds = append(fds, int(f.Fd()))
	}
	sent := send(n.channel, request, fds)
	runtime.KeepAlive(pass)
	s.handedOver()
	text, err := io.ReadAll(io.LimitReader(n.channel, libctx.MaxSandboxPipe))
	if errors.Is(sent, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return errdefs.New(errdefs.Unavailable, "not started after %v", libctx.SandboxStart)
	}
	if err != nil && !errors.Is(err, unix.ECONNRESET) { // it did not read everything
		return errdefs.New(errdefs.Internal, "read the answer: %w", err)
	}
	if err := sandbox.ParseReport(string(text)); err != nil {
		return err
	}
	if sent != nil {
		return errdefs.New(errdefs.Internal, "send the request: %w", sent)
	}
	return nil
}

// send writes to a socket, with descriptors beside the first byte.
func send(socket *os.File, data []byte, fds []int) error {
	conn, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	n := 0
	werr := conn.Write(func(fd uintptr) bool {
		n, err = unix.SendmsgN(int(fd), data, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	if werr != nil {
		return werr
	}
	if err == nil && n < len(data) {
		_, err = socket.Write(data[n:])
	}
	return err
}

// follow passes the streams of a payload until everything in the sandbox is
// gone. A writer that fails ends the sandbox.
func (n *launch) follow(ctx context.Context, s *streams, stdio Stdio) error {
	var copying sync.WaitGroup
	var once sync.Once
	var failed error
	fail := func(err error) {
		once.Do(func() {
			failed = err
			n.kill()
		})
	}
	if stdio.Grace > 0 {
		ctx = context.WithoutCancel(ctx)
	}
	copying.Go(func() { s.feed(stdio.Stdin) })
	copying.Go(func() { pump(ctx, s.stdout, stdio.Stdout, fail) })
	copying.Go(func() { pump(ctx, s.stderr, stdio.Stderr, fail) })
	<-n.over
	s.expire()
	copying.Wait()
	return failed
}

// explain is why a launch did not come to its payload, once nothing of it is
// left. bwrap says it in its words; the entry step's refusal says itself.
func (n *launch) explain(cause error) error {
	if k := errdefs.KindOf(cause); k != errdefs.Unavailable && k != errdefs.Internal {
		var known *errdefs.Error
		if errors.As(cause, &known) {
			return errdefs.New(k, "sandbox: %w", cause)
		}
	}
	n.words.SetReadDeadline(time.Now().Add(libctx.DrainAfterExit))
	text, _ := io.ReadAll(io.LimitReader(n.words, libctx.MaxSandboxPipe))
	said := strings.TrimSpace(wire.Clean(text))
	if said == "" {
		return errdefs.New(errdefs.Unavailable, "sandbox: it did not start: %w", cause)
	}
	said = strings.ReplaceAll(said, "\n", "; ")
	e := errdefs.New(errdefs.Unavailable, "sandbox: it did not start: %s", said)
	if hint := remedy(said); hint != "" {
		e.WithHint("%s", hint)
	}
	return e
}

// interrupted is the error of a run whose context is done.
func interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	kind := errdefs.KindOf(cause)
	if kind == errdefs.Internal {
		kind = errdefs.Cancelled
	}
	return errdefs.New(kind, "sandbox: ended before the payload did: %w", cause)
}

// untilDone runs fn, which reads from f, and interrupts it when ctx is done or
// the launch takes too long.
func untilDone(ctx context.Context, f *os.File, fn func() error) error {
	f.SetReadDeadline(time.Now().Add(libctx.SandboxStart))
	expired := make(chan struct{})
	disarm := context.AfterFunc(ctx, func() {
		defer close(expired)
		f.SetReadDeadline(time.Now())
	})
	err := fn()
	if !disarm() {
		<-expired
	}
	f.SetReadDeadline(time.Time{})
	return err
}
