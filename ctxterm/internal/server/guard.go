package server

import (
	"os"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/procid"
)

// Guard decides who may be a client, by what the kernel says of the peer alone.
// Its errors are errdefs.Denied.
type Guard func(peercred.Peer) error

// Outside lets in processes of a user that are outside of this process's pid
// namespace, which the kernel can give no number in it. The program, and all that
// it starts, has one.
func Outside(uid uint32) Guard {
	return func(p peercred.Peer) error {
		switch {
		case p.UID != uid:
			return stranger(p)
		case p.PID != 0:
			return inside(p)
		}
		return nil
	}
}

// Beside lets in processes of a user that are not below this process, which
// adopts all orphans of the program. A peer that has ended since is refused, for
// nothing can be told of it.
func Beside(uid uint32) Guard {
	return func(p peercred.Peer) error {
		if p.UID != uid {
			return stranger(p)
		}
		for pid := int(p.PID); pid != 1; {
			if pid == os.Getpid() {
				return inside(p)
			}
			parent, err := procid.Parent(pid)
			if err != nil {
				return errdefs.New(errdefs.Denied, "process %d is gone", p.PID)
			}
			if parent == 0 {
				break
			}
			pid = parent
		}
		return nil
	}
}

func stranger(p peercred.Peer) error {
	return errdefs.New(errdefs.Denied, "user %d has no right to this terminal", p.UID)
}

func inside(p peercred.Peer) error {
	return errdefs.New(errdefs.Denied, "process %d is inside of this terminal", p.PID)
}
