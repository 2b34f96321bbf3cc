package sandboxrun

import (
	"errors"
	"os"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// mountTable is the mount table of this process, which is what bwrap starts
// from. A sandbox has a copy of it, made with the sandbox, that mounts and
// unmounts here do not reach. What is in the table is never compared: the kernel
// gives mount ids and device numbers of what is gone to what comes, so another
// file system can look the same in every field.
const mountTable = "/proc/self/mountinfo"

// watchMounts opens the mount table for mountsChanged. The caller closes it.
//
// A change is told to one poll only, so nobody else may poll this description:
// the file stays out of the runtime's poller, which a file from os.Open is in.
func watchMounts() (*os.File, error) {
	fd, err := unix.Open(mountTable, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "watch the mount table: %w", err)
	}
	return os.NewFile(uintptr(fd), mountTable), nil // in blocking mode: not polled
}

// mountsChanged reports whether anything was mounted, moved, unmounted or
// mounted with other options since the table was opened. It is asked once. No
// answer counts as a change.
func mountsChanged(table *os.File) bool {
	changed := true
	conn, err := table.SyscallConn()
	if err != nil {
		return changed
	}
	conn.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			var n int
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLPRI}}, 0)
			changed = err != nil || n > 0
		}
	})
	return changed
}
