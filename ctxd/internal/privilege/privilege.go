// Package privilege is what programs of the daemon's module give up when they
// start, for themselves and for whatever they start: capabilities they have no
// use for, and every way to get new ones (docs/security.md says which is left
// and why).
//
// The kernel keeps these rights by thread. A process gives them up on all of its
// threads, which Go can do as long as no thread is C's: the programs are built
// without cgo.
package privilege

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"golang.org/x/sys/unix"
)

// Server is what a server of agents, or the launcher of a terminal, keeps of
// root's capabilities. Nothing else of root's is lost to it: what belongs to
// root it can read and write.
var Server = []int{
	unix.CAP_SETUID, unix.CAP_SETGID, // to act as an agent's owner, and start sandboxes as such
	unix.CAP_CHOWN,   // to give the owner the agent's socket and home
	unix.CAP_KILL,    // to end a sandbox of the owner's
	unix.CAP_SETFCAP, // for sandboxes of agents of root: what it takes to map uid 0 into a namespace
}

// Admin is what ctxd admin keeps: to act as an agent's owner, and to give the
// owner what is theirs.
var Admin = []int{unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_CHOWN}

// Drop gives up, for good and on every thread, all capabilities of this process
// but those to keep, and the ways to more: none comes from executing a program,
// be it set-user-ID, with file capabilities, or executed as uid 0. Whoever has
// no capabilities keeps none.
//
// Call it before anything is started and before another identity is taken. In a
// program with cgo the error is errdefs.Internal.
func Drop(keep ...int) error {
	if fault.Off("capabilities:drop") {
		return nil
	}
	if err := everywhere(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
		return err
	}
	if err := everywhere(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0); err != nil {
		return err
	}
	now, err := capabilities()
	if err != nil {
		return err
	}
	kept := of(keep)
	// What the bounding set lacks, no program of this process ever has outside a
	// user namespace of its own. Without the right to reduce it there is nothing
	// that could come of it: no new privileges.
	if now.effective.has(unix.CAP_SETPCAP) {
		for c := 0; ; c++ {
			held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
			if errors.Is(err, unix.EINVAL) {
				break // the kernel has no more of them
			}
			if held == 0 || kept.has(c) {
				continue
			}
			if err := everywhere(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c), 0); err != nil {
				return err
			}
		}
	}
	return sets{effective: now.effective & kept, permitted: now.permitted & kept}.take()
}

// set is a set of capabilities, one bit each.
type set uint64

func of(caps []int) (s set) {
	for _, c := range caps {
		s |= 1 << c
	}
	return s
}

func (s set) has(c int) bool { return c < 64 && s&(1<<c) != 0 }

// sets are the capabilities of a thread; those that survive the execution of a
// program are always empty here.
type sets struct{ effective, permitted set }

// capabilities are those of the calling thread.
func capabilities() (sets, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return sets{}, errdefs.New(errdefs.Internal, "read capabilities: %w", err)
	}
	whole := func(low, high uint32) set { return set(low) | set(high)<<32 }
	return sets{whole(data[0].Effective, data[1].Effective), whole(data[0].Permitted, data[1].Permitted)}, nil
}

// take makes every thread have these capabilities and no others.
func (s sets) take() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for i := range data {
		data[i].Effective, data[i].Permitted = uint32(s.effective>>(32*i)), uint32(s.permitted>>(32*i))
	}
	err := everywhere(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
	return err
}

// everywhere makes a system call on every thread.
//
//go:uintptrescapes
func everywhere(call, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(call, a, b, c)
	switch errno {
	case 0:
		return nil
	case unix.ENOTSUP:
		return errdefs.New(errdefs.Internal, "give up privileges: a program with cgo can not do that on all threads").
			WithHint("build it with CGO_ENABLED=0")
	}
	return errdefs.New(errdefs.Internal, "give up privileges: %w", errno)
}
