package terminal

import (
	"os"
	"path/filepath"
	"strconv"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"golang.org/x/sys/unix"
)

// Tell sends a report to the datagram socket of whoever waits for it;
// errdefs.Unavailable if nobody does any more.
func Tell(path string, r terminal.Report) error {
	fail := func(err error) error {
		return errdefs.New(errdefs.Unavailable, "report to %s: %w", path, err)
	}
	// However long the path is.
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(dir)
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(s)
	to := &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + filepath.Base(path)}
	if err := unix.Sendto(s, r.Text(), unix.MSG_NOSIGNAL, to); err != nil {
		return fail(os.NewSyscallError("send", err))
	}
	return nil
}
