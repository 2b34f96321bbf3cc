// Package entry is the first step inside every sandbox: "ctxtool entry". It
// bounds what follows and closes every descriptor that a payload has no use
// for, waits at its channel for the launcher's one request, makes sure that the
// directories shown are those that were checked, and becomes the payload. How
// long it waits is the launcher's business: a sandbox prepared for a call to
// come is the same step (docs/reference/sandbox.md).
//
// It runs before anything untrusted and takes part in the launcher's promise
// that an abandoned launch executes nothing: the end of the channel is a
// refusal. The payload's standard streams come with the request, so that this
// process is the only one in the sandbox that ever holds them for it: the first
// process, which outlives every payload, never does.
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
// channel, and to standard error only if there is none.
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
	run, err := serve(&e, own)
	if err == nil {
		return run()
	}
	answer(e.Channel, sandbox.Refusal(err))
	if errdefs.Is(err, errdefs.NotFound) {
		return exitNotFound
	}
	return exitRefused
}

// serve comes back only with a payload that this program is itself, or with the
// reason why there is none. The channel may get another number.
func serve(e *sandbox.Entry, own func(argv []string) (run func() int)) (run func() int, err error) {
	if err := closeOthers(); err != nil {
		return nil, err
	}
	if err := limit(e.Limits); err != nil {
		return nil, err
	}
	answer(e.Channel, sandbox.Ready)
	r, streams, err := await(e.Channel)
	if err != nil {
		return nil, err
	}
	if err := admit(r); err != nil {
		return nil, err
	}
	if e.Channel, err = streams.install(e.Channel); err != nil {
		return nil, err
	}
	// What is passed besides is for another program than this one.
	if run := own(r.Argv); run != nil && r.Passed == 0 {
		if err := become(r.Env); err != nil {
			return nil, err
		}
		answer(e.Channel, sandbox.Handover)
		unix.Close(e.Channel)
		return run, nil
	}
	answer(e.Channel, sandbox.Handover)
	return nil, execute(r)
}

// admit makes sure that the payload may run, and prepares its process.
func admit(r sandbox.Request) error {
	for _, x := range r.Expect {
		if err := same(x); err != nil {
			return err
		}
	}
	if err := unix.Chdir(r.Cwd); err != nil {
		return errdefs.New(errdefs.KindOf(err), "start in %s: %w", r.Cwd, err)
	}
	// The daemon's own mask is none of the payload's business.
	unix.Umask(0o022)
	return nil
}

// become gives this process the environment of its payload. What bwrap put
// there itself goes.
func become(env []string) error {
	os.Clearenv()
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		if err := os.Setenv(k, v); err != nil {
			return errdefs.New(errdefs.Invalid, "set the variable %q: %w", k, err)
		}
	}
	return nil
}

// execute becomes the payload; it returns only with an error.
func execute(r sandbox.Request) error {
	err := syscall.Exec(r.Argv[0], r.Argv, r.Env)
	kind := errdefs.KindOf(err)
	if name := interpreter(r.Argv[0]); errors.Is(err, syscall.ENOENT) && name != "" {
		return errdefs.New(errdefs.Invalid, "execute %s: its first line names the interpreter %q, which is not there", r.Argv[0], name)
	}
	if errors.Is(err, syscall.E2BIG) || errors.Is(err, syscall.ENOEXEC) {
		kind = errdefs.Invalid
	}
	return errdefs.New(kind, "execute %s: %w", r.Argv[0], err)
}

// interpreter is what the first line of a script names, "" if there is none. A
// script with the line ends of another system names one that ends in "\r".
func interpreter(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256) // as much as the kernel looks at
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	name, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(strings.Trim(name, " \t"), " ")
	return name
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

// same checks that the object at a path is the one that was checked outside, and
// that what protects it is still there.
func same(x sandbox.Expect) error {
	fd, err := unix.Open(x.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return errdefs.New(errdefs.Denied, "%s: can not be looked at: %w", x.Path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errdefs.New(errdefs.Denied, "%s: can not be looked at: %w", x.Path, err)
	}
	if st.Dev != x.Dev || st.Ino != x.Ino {
		return errdefs.New(errdefs.Denied, "%s: is not what was checked: it was exchanged meanwhile", x.Path)
	}
	if !x.ReadOnly {
		return nil
	}
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Flags&unix.MS_RDONLY == 0 {
		return errdefs.New(errdefs.Denied, "%s: is not protected any more: it was exchanged meanwhile", x.Path)
	}
	return nil
}
