// Package detach starts programs that outlive whoever starts them: a session of
// their own, no terminal, nothing on standard input, no directory kept busy, no
// descriptor and no variable that they were not given.
package detach

import (
	"os"
	"path/filepath"
	"syscall"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Program is what to start.
type Program struct {
	Argv []string // an absolute path, and its arguments
	Env  []string // all of the environment, NAME=VALUE
	Log  *os.File // standard output and error; stays the caller's
}

// Start starts a program and returns once it has been executed. The caller may
// wait for its end or leave it alone. A program that can not be started is
// errdefs.Unavailable.
//
// All descriptors of this process but the standard ones are close-on-exec
// afterwards: what our own parent left open is not the program's business.
func Start(p Program) (*os.Process, error) {
	fail := func(err error) (*os.Process, error) {
		return nil, errdefs.New(errdefs.Unavailable, "start %s: %w", p.Argv[0], err)
	}
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fail(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return fail(err)
	}
	defer null.Close()
	process, err := os.StartProcess(p.Argv[0], p.Argv, &os.ProcAttr{
		Dir:   "/",
		Env:   append([]string{}, p.Env...), // nil would be our own
		Files: []*os.File{null, p.Log, p.Log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fail(err)
	}
	return process, nil
}

// OpenLog opens a log for reading, and for writing at its end. It is this user's
// alone, whoever made it with which mode. A link or what is no regular file is
// errdefs.Invalid. The caller closes it.
func OpenLog(path string) (*os.File, error) {
	dir, err := atomicfile.OpenDir(filepath.Dir(path))
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "log: %w", err)
	}
	defer dir.Close()
	f, _, err := dir.OpenAppend(filepath.Base(path), 0o600)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "log: %w", err)
	}
	if err := unix.Fchmod(int(f.Fd()), 0o600); err != nil {
		f.Close()
		return nil, errdefs.New(errdefs.KindOf(err), "log %s: mode: %w", path, err)
	}
	return f, nil
}
