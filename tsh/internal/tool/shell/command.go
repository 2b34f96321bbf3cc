package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// ending is how a command ended.
type ending struct {
	code      int    // exit code, 128 and the number for a signal
	signal    string // name of the signal it died of
	took      time.Duration
	timedOut  bool
	cancelled error // why ctx was done, nil if it was not
	leftover  bool  // somebody else still held the output when reading stopped
}

// command runs argv, whose first word is a path, as the leader of a session of its own and
// passes what it and its children write to w until it has ended, and for
// libctx.DrainAfterExit longer while somebody holds the output open. Then its
// process group is killed, whatever is left of it; processes that made a session
// of their own are the sandbox's to end. An error means that it did not start.
func command(ctx context.Context, argv, environ []string, timeout time.Duration, w io.Writer) (ending, error) {
	r, pipe, err := os.Pipe()
	if err != nil {
		return ending{}, errdefs.New(errdefs.KindOf(err), "pipe: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = environ
	cmd.Stdout, cmd.Stderr = pipe, pipe
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begin := time.Now()
	err = cmd.Start()
	pipe.Close()
	switch {
	case errors.Is(err, unix.E2BIG):
		return ending{}, errdefs.New(errdefs.Invalid, "arguments: a command of that length is more than the system allows")
	case errors.Is(err, unix.ENOENT):
		return ending{}, errdefs.New(errdefs.Unavailable, "%s is not there: this system does not have it", argv[0])
	case err != nil:
		return ending{}, errdefs.New(errdefs.Unavailable, "%s did not start: %w", argv[0], err)
	}

	drained := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 64<<10))
		drained <- err
	}()
	// The leader stays a zombie until Wait below, so that its number, which is
	// the group's, can not become another's meanwhile.
	exited := make(chan struct{})
	go func() {
		awaitExit(cmd.Process.Pid)
		close(exited)
	}()

	var e ending
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-exited:
	case <-deadline.C:
		e.timedOut = true
	case <-ctx.Done():
		e.cancelled = context.Cause(ctx)
	}
	group := -cmd.Process.Pid
	if e.timedOut || e.cancelled != nil {
		end(group, exited)
	}
	e.took = time.Since(begin)
	r.SetReadDeadline(time.Now().Add(libctx.DrainAfterExit))
	e.leftover = errors.Is(<-drained, os.ErrDeadlineExceeded)
	unix.Kill(group, unix.SIGKILL)
	cmd.Wait() // how it ended is in ProcessState; that is no error here
	e.code = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.code = 128 + int(ws.Signal())
		e.signal = unix.SignalName(ws.Signal())
	}
	return e, nil
}

// end asks a group to end, gives it libctx.TermGrace, then kills it.
func end(group int, exited <-chan struct{}) {
	unix.Kill(group, unix.SIGTERM)
	unix.Kill(group, unix.SIGCONT) // one that has stopped could not hear it
	grace := time.NewTimer(libctx.TermGrace)
	defer grace.Stop()
	select {
	case <-exited:
	case <-grace.C:
	}
	unix.Kill(group, unix.SIGKILL)
	<-exited
}

// awaitExit returns when the child has ended, and leaves it to be waited for.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
