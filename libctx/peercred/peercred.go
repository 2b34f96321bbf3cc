// Package peercred states who is at the other end of a Unix socket, as the
// kernel recorded it when the peer connected. It decides nothing: package authz
// of each server does.
package peercred

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Peer is the kernel's record of a connected process. PID belongs to whoever
// called connect and may be gone or reused; it is 0 for a peer in a pid
// namespace that ours can not see. An unmapped uid reads 65534. Neither value
// may be taken for a match.
type Peer struct {
	UID, GID uint32
	PID      int32
}

// Of asks the kernel for the peer of a connection (SO_PEERCRED).
func Of(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var optErr error
	err = raw.Control(func(fd uintptr) {
		cred, optErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = optErr
	}
	if err != nil {
		return Peer{}, fmt.Errorf("peer credentials: %w", err)
	}
	return Peer{UID: cred.Uid, GID: cred.Gid, PID: cred.Pid}, nil
}
