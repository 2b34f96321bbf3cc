package sandboxrun

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/wire"
)

// Run runs one payload and returns when its pid namespace is gone and its output
// has been read. A payload that ran is no error, whatever its exit code.
//
// When ctx is done the payload gets SIGTERM and, libctx.TermGrace later, the
// whole namespace SIGKILL; what it writes meanwhile reaches nobody, and the
// error wraps the cause of ctx. An error of a writer kills the sandbox and is
// returned. A payload that never started is errdefs.Unavailable with bwrap's
// own message, or what the entry step refused it with: errdefs.Denied if a
// directory was exchanged, errdefs.NotFound, errdefs.Denied or errdefs.Invalid
// if it can not be executed.
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
	if s, err = l.complete(s); err != nil {
		return Result{}, err
	}
	p, err := l.prepare(s, len(stdio.Stdin) > 0)
	if err != nil {
		return Result{}, err
	}
	defer p.close() // after everything is gone
	b := &box{}
	if b.proc, err = l.start(s.Identity, p.argv, p.inside); err != nil {
		return Result{}, err
	}
	defer b.close()
	fault.Point("sandbox.started")
	p.handedOver()

	if err := gate(ctx, p, b, stdio); err != nil {
		return Result{Duration: time.Since(begun)}, err
	}
	fault.Point("sandbox.opened")
	l.log.Debug("sandbox started", "kind", s.Kind, "pid", b.id.PID)
	err = follow(ctx, p, b, stdio)
	r := Result{ExitCode: b.exitCode(), Duration: time.Since(begun)}
	l.log.Debug("sandbox ended", "kind", s.Kind, "pid", b.id.PID, "exit", r.ExitCode, "duration", r.Duration)
	return r, err
}

// gate brings a launch to its gate, makes its first process known, and opens.
// If it does not come to that, nothing of the launch is left on return.
func gate(ctx context.Context, p *launch, b *box, stdio Stdio) error {
	err := untilDone(ctx, p.status, func() error {
		return b.find(p.status)
	})
	if err != nil {
		b.abandon()
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return explain(p, err)
	}
	if stdio.Started != nil {
		err = stdio.Started(b.id)
	}
	if err == nil && ctx.Err() != nil {
		err = interrupted(ctx)
	}
	if err != nil {
		b.abandon()
		return err
	}
	b.await()
	fault.Point("sandbox.gate")
	if err := p.open(); err != nil {
		// The other ends are gone, and with them the sandbox.
		b.kill()
		<-b.over
		return explain(p, err)
	}
	return nil
}

// follow accompanies a launch from its open gate to its end.
func follow(ctx context.Context, p *launch, b *box, stdio Stdio) error {
	stopped := make(chan struct{})
	disarm := context.AfterFunc(ctx, func() {
		defer close(stopped)
		b.stop()
	})
	defer func() {
		if !disarm() {
			<-stopped
		}
	}()
	// bwrap's own words go to the stream that will be the payload's: nothing of
	// it is passed on before the payload has it.
	if err := started(p); err != nil {
		b.kill()
		<-b.over
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return explain(p, err)
	}

	var streams sync.WaitGroup
	var once sync.Once
	var failed error
	fail := func(err error) {
		once.Do(func() {
			failed = err
			b.kill()
		})
	}
	streams.Go(func() { feed(p, stdio.Stdin) })
	streams.Go(func() { pump(ctx, p.stdout, stdio.Stdout, fail) })
	streams.Go(func() { pump(ctx, p.stderr, stdio.Stderr, fail) })
	<-b.over
	// Nobody in there can write any more. What is left is in the pipes, unless
	// a descriptor was passed to a process outside.
	end := time.Now().Add(libctx.DrainAfterExit)
	p.stdout.SetReadDeadline(end)
	p.stderr.SetReadDeadline(end)
	if p.stdin != nil {
		p.stdin.SetWriteDeadline(time.Now())
	}
	streams.Wait()
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return nil
}

// started reads the entry step's report to its end: the payload has the process
// by then, or nobody has.
func started(p *launch) error {
	p.report.SetReadDeadline(time.Now().Add(libctx.SandboxStart))
	text, err := io.ReadAll(io.LimitReader(p.report, libctx.MaxSandboxPipe))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errdefs.New(errdefs.Unavailable, "not started after %v", libctx.SandboxStart)
	}
	if err != nil {
		return errdefs.New(errdefs.Internal, "read the report: %w", err)
	}
	return sandbox.ParseReport(string(text))
}

// explain is why a launch did not come to its payload, once nothing of it is
// left. bwrap says it on standard error; the entry step's refusal says itself.
func explain(p *launch, cause error) error {
	if k := errdefs.KindOf(cause); k != errdefs.Unavailable && k != errdefs.Internal {
		var known *errdefs.Error
		if errors.As(cause, &known) {
			return errdefs.New(k, "sandbox: %w", cause)
		}
	}
	p.stderr.SetReadDeadline(time.Now().Add(libctx.DrainAfterExit))
	text, _ := io.ReadAll(io.LimitReader(p.stderr, libctx.MaxSandboxPipe))
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

// feed writes standard input until it is all written or nobody reads it.
func feed(p *launch, data []byte) {
	if p.stdin == nil {
		return
	}
	p.stdin.Write(data)
	p.stdin.Close()
}

// pump passes output on until its end. After ctx is done or the writer failed it
// only empties the pipe, so that the payload can end.
func pump(ctx context.Context, from *os.File, to io.Writer, fail func(error)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && to != nil && ctx.Err() == nil {
			if _, werr := to.Write(buf[:n]); werr != nil {
				fail(werr)
				to = nil
			}
		}
		if err != nil {
			return
		}
	}
}
