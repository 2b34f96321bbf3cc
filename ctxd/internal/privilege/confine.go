package privilege

import (
	"unsafe"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Confine shuts the calling thread, and whatever is started from it, off from two
// things that namespaces leave open: privileges that come from executing a
// program, and abstract Unix sockets of others in the same network namespace,
// such as a desktop's. It can not be taken back: the caller keeps the thread for
// starting programs.
//
// The sockets need Landlock's scopes, which Linux has since 6.12; abstract
// reports whether they are shut.
func Confine() (abstract bool, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return false, errdefs.New(errdefs.Internal, "forbid new privileges: %w", err)
	}
	scope := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&scope)), unsafe.Sizeof(scope), 0)
	if errno != 0 {
		return false, nil // not in this kernel, not switched on, or kept from us by a container
	}
	defer unix.Close(int(rules))
	_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0)
	return errno == 0, nil
}
