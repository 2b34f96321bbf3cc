package peercred

import (
	"errors"
	"net"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// Hold takes hold of the peer's process itself: a number alone may be another
// process's by now. One that is gone is errdefs.NotFound. The caller closes the
// handle.
//
// Where the kernel can not name the process but by its number, a peer that ended
// between its connect and this call, whose number was given out again within that
// time, is taken for its successor.
func (p Peer) Hold(c *net.UnixConn) (*procid.Handle, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, opt := -1, error(nil)
	if err := raw.Control(func(s uintptr) {
		fd, opt = unix.GetsockoptInt(int(s), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	}); err != nil {
		return nil, err
	}
	if errors.Is(opt, unix.ENOPROTOOPT) {
		return procid.Open(int(p.PID))
	}
	if opt != nil {
		return nil, errdefs.New(errdefs.NotFound, "process %d: is gone: %w", p.PID, opt)
	}
	return procid.Adopt(fd, int(p.PID))
}
