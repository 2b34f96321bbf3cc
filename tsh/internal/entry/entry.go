// Package entry is the first step inside every sandbox: "ctxtool entry". It
// waits for the launcher's word, bounds what follows, makes sure that the
// directories shown are those that were checked, closes every descriptor that
// the payload has no use for, and becomes the payload.
//
// It runs before anything untrusted and takes part in the launcher's promise
// that an abandoned launch executes nothing: the end of the token pipe is a
// refusal.
package entry

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// Exit codes of a step that did not become the payload. The launcher does not
// go by them: the report tells it.
const (
	exitRefused  = 126
	exitNotFound = 127
)

// Main runs the step; args are the words behind "ctxtool entry", as
// sandbox.Entry writes them. It returns only if the payload does not run, with
// the exit code 126, or 127 if the payload is not there. The reason goes to the
// report descriptor, and to standard error only if there is none.
//
// A payload that this program would be the interpreter of is not executed but
// done by own, which says so by returning how: the same program would only start
// again. Main then returns what that returns.
func Main(args []string, own func(argv []string) (run func() int)) int {
	e, err := sandbox.ParseEntry(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ctxtool: "+err.Error())
		return exitRefused
	}
	err = admit(e)
	if err == nil {
		if run := own(e.Argv); run != nil {
			os.Unsetenv("PWD") // bwrap's, as in environ
			write(e.Report, sandbox.Handover)
			unix.Close(e.Report)
			unix.Close(e.Token)
			return run()
		}
		err = execute(e)
	}
	write(e.Report, sandbox.Refusal(err))
	if errdefs.Is(err, errdefs.NotFound) {
		return exitNotFound
	}
	return exitRefused
}

// admit makes sure that the payload may run, and prepares its process.
func admit(e sandbox.Entry) error {
	if err := closeOthers(); err != nil {
		return err
	}
	if err := limit(e.Limits); err != nil {
		return err
	}
	if err := await(e.Token); err != nil {
		return err
	}
	for _, x := range e.Expect {
		if err := same(x); err != nil {
			return err
		}
	}
	if err := unix.Chdir(e.Cwd); err != nil {
		return errdefs.New(errdefs.KindOf(err), "start in %s: %w", e.Cwd, err)
	}
	// The daemon's own mask is none of the payload's business.
	unix.Umask(0o022)
	return nil
}

// execute becomes the payload; it returns only with an error.
func execute(e sandbox.Entry) error {
	write(e.Report, sandbox.Handover)
	err := syscall.Exec(e.Argv[0], e.Argv, environ())
	kind := errdefs.KindOf(err)
	if errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.ENOEXEC) {
		kind = errdefs.Invalid
	}
	return errdefs.New(kind, "execute %s: %w", e.Argv[0], err)
}

// environ is the environment without what bwrap put there itself.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PWD=") {
			env = append(env, kv)
		}
	}
	return env
}

// closeOthers sees to it that no payload has a descriptor from 3 up, ours
// included. They end with the execution of another program; this one goes on
// with what its runtime needs.
func closeOthers() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return errdefs.New(errdefs.Internal, "close descriptors: %w", err)
	}
	return nil
}

// limit sets the limits here, inside the user namespace, where the number of
// processes counts for this sandbox alone.
func limit(l sandbox.Limits) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"file size", unix.RLIMIT_FSIZE, l.FileBytes},
		{"core size", unix.RLIMIT_CORE, 0},
	} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.resource, &now); err != nil {
			return errdefs.New(errdefs.Internal, "limit of %s: %w", r.name, err)
		}
		// A limit that is already lower stays. Setting it through package
		// syscall also keeps Go from putting its start-up value back.
		v := min(r.value, now.Max)
		if err := syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: v, Max: v}); err != nil {
			return errdefs.New(errdefs.Internal, "limit of %s: %w", r.name, err)
		}
	}
	return nil
}

// await reads the token.
func await(fd int) error {
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return errdefs.New(errdefs.Internal, "read the token: %w", err)
		case n == 0 || b[0] != sandbox.Token:
			return errdefs.New(errdefs.Cancelled, "the launch was given up")
		}
		return nil
	}
}

// same checks that the object at a path is the one that was checked outside.
func same(x sandbox.Expect) error {
	var st unix.Stat_t
	if err := unix.Lstat(x.Path, &st); err != nil {
		return errdefs.New(errdefs.Denied, "%s: can not be looked at: %w", x.Path, err)
	}
	if st.Dev != x.Dev || st.Ino != x.Ino {
		return errdefs.New(errdefs.Denied, "%s: is not what was checked: it was exchanged meanwhile", x.Path)
	}
	return nil
}

// write reports. The pipe is empty and holds more than a line, so it never
// blocks; if nobody reads, nobody wants to know.
func write(fd int, text string) {
	unix.Write(fd, []byte(text))
}
