// Package asuser does file work with the rights of another user, so that a
// process of root reaches through a user's directories exactly what that user
// reaches, on network file systems too.
//
// The kernel keeps these rights by thread. Do therefore works on a thread of
// its own that ends with the work: nothing has to be given back, so nothing can
// be forgotten.
package asuser

import (
	"os"
	"runtime"
	"slices"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"golang.org/x/sys/unix"
)

// Identity is a uid with its groups, as the kernel will check it.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // supplementary; order has no meaning
}

// Self is the effective identity of this process.
func Self() Identity {
	id := Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	// The list can only fail to be read if it does not fit; Go sizes it.
	groups, _ := os.Getgroups()
	for _, g := range groups {
		id.Groups = append(id.Groups, uint32(g))
	}
	return id
}

// IsSelf reports whether the process has this uid already. Groups do not count:
// a process of an ordinary user can not change them, and root needs none.
func (id Identity) IsSelf() bool { return int64(id.UID) == int64(os.Geteuid()) }

// Do runs fn with the file system rights of id and returns its error. If id is
// not the process's own, fn runs in a goroutine of its own whose thread is
// never used again; the caller waits for it. Only file access changes: fn must
// start no process (it would die with the thread if it asked for a
// parent-death signal) and no goroutine (which would have the old rights).
//
// Without the right to change identity the error is errdefs.Denied and fn does
// not run; nor does it if the kernel did not take the change (errdefs.Internal).
// A panic of fn becomes a panic of the caller.
func (id Identity) Do(fn func() error) error { return id.run(Identity.take, fn) }

// Be is Do for what tells somebody else who calls: to the other end of a socket
// that fn connects, the caller is id.
func (id Identity) Be(fn func() error) error { return id.run(Identity.become, fn) }

func (id Identity) run(take func(Identity) error, fn func() error) error {
	if id.IsSelf() || fault.Off("asuser:rights") {
		return fn()
	}
	var (
		err      error
		panicked any
		finished bool
	)
	onItsOwnThread(func() {
		if err = take(id); err != nil {
			finished = true
			return
		}
		defer func() {
			if !finished {
				panicked = recover()
			}
		}()
		err = fn()
		finished = true
	})
	switch {
	case finished:
		return err
	case panicked != nil:
		panic(panicked)
	}
	// fn ended its goroutine, as a failing test does; so does the caller.
	runtime.Goexit()
	return nil
}

// onItsOwnThread runs work on a thread that ends with it, and waits.
func onItsOwnThread(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked: so the thread ends
		if unix.Gettid() != os.Getpid() {
			work()
			return
		}
		// The main thread can not end: Go would keep it, unused, with what work
		// left on it. While it is held here, a new goroutine gets another one.
		onItsOwnThread(work)
		runtime.UnlockOSThread()
	}()
	<-done
}

// noID is what the kernel takes for "leave it as it is".
const noID = ^uint32(0)

// take gives the calling thread, and no other, the rights of id. The calls of
// x/sys/unix used here act on the thread, unlike those of package syscall.
func (id Identity) take() error {
	if id.UID == noID || id.GID == noID || slices.Contains(id.Groups, noID) {
		return errdefs.New(errdefs.Invalid, "identity %d:%d: is not a user", id.UID, id.GID)
	}
	groups := make([]int, len(id.Groups))
	for i, g := range id.Groups {
		groups[i] = int(g)
	}
	// Groups first: the right to set them may go with the uid.
	if err := unix.Setgroups(groups); err != nil {
		return errdefs.New(errdefs.Denied, "act as uid %d: set groups: %w", id.UID, err)
	}
	// Both calls report the old id and never an error: ask what is there now.
	unix.SetfsgidRetGid(int(id.GID))
	if now, _ := unix.SetfsgidRetGid(-1); uint32(now) != id.GID {
		return errdefs.New(errdefs.Denied, "act as uid %d: group %d was not taken", id.UID, id.GID)
	}
	unix.SetfsuidRetUid(int(id.UID))
	if now, _ := unix.SetfsuidRetUid(-1); uint32(now) != id.UID {
		return errdefs.New(errdefs.Denied, "act as uid %d: uid was not taken", id.UID)
	}
	return dropped(id.UID)
}

// become is take with the effective ids as well. The real and the saved ones stay,
// which is what nobody asks for.
func (id Identity) become() error {
	if err := id.take(); err != nil {
		return err
	}
	// Not by the functions of the same name, which change every thread.
	const keep = ^uintptr(0)
	unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(id.GID), keep)
	unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(id.UID), keep)
	if unix.Getegid() != int(id.GID) || unix.Geteuid() != int(id.UID) {
		return errdefs.New(errdefs.Denied, "be uid %d: it was not taken", id.UID)
	}
	return dropped(id.UID)
}

// dropped verifies that the thread lost the capabilities that override file
// permissions. The kernel takes them when the file system uid stops being 0,
// unless the process was started with a setting that forbids it.
func dropped(uid uint32) error {
	if uid == 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return errdefs.New(errdefs.Internal, "act as uid %d: read capabilities: %w", uid, err)
	}
	const override = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER
	if data[0].Effective&override != 0 {
		return errdefs.New(errdefs.Internal, "act as uid %d: capabilities that override file permissions remain", uid)
	}
	return nil
}
