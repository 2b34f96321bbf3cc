// Package authz decides who may use an operation of the agent socket. It is
// pure: facts come from the kernel (package peercred), the decision is a table.
package authz

import (
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
)

// Subject is what a peer is to one agent.
type Subject int

// The subjects, weakest first.
const (
	Stranger Subject = iota // any other uid
	Owner                   // the agent's owner
	Root                    // uid 0: child dispatch, stop, repair
)

// Of says what the peer is to an agent owned by owner. A peer that is both uid 0
// and the owner is the owner.
func Of(p peercred.Peer, owner uint32) Subject {
	switch p.UID {
	case owner:
		return Owner
	case 0:
		return Root
	}
	return Stranger
}

// Need is the requirement of an operation: the subjects that may use it. The
// zero Need admits nobody, so an operation without one is refused.
type Need uint8

// What operations need.
const (
	OwnerOrRoot = Need(1<<Owner | 1<<Root) // anybody who may use the socket at all
	OwnerOnly   = Need(1 << Owner)         // who vouches for processes of the owner
)

// Check refuses with errdefs.Denied a subject that the need does not name.
func (n Need) Check(s Subject) error {
	if n&(1<<s) == 0 {
		return errdefs.New(errdefs.Denied, "this socket is its owner's")
	}
	return nil
}
