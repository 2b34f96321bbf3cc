// Package seccomp is the system call filter of every sandbox, as data for
// bubblewrap's --seccomp. It stands apart from package sandbox because its
// tables cost time at the start of every program that holds them, and the first
// step inside a sandbox must not pay for it.
package seccomp

import (
	"encoding/binary"
	"maps"
	"slices"

	"cortexfs.org/libctx/errdefs"
	bpfseccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// refused are system calls no tool needs: they administer the machine, look
// into its kernel, or reach interfaces that have often had holes. Names that an
// architecture does not have are left out there.
var refused = []string{
	// Mounts. The payload has no rights for them; this keeps their code away.
	"mount", "umount", "umount2", "pivot_root", "chroot",
	"open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
	// Namespaces.
	"setns",
	// The kernel and its modules.
	"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "create_module",
	"bpf", "perf_event_open", "userfaultfd", "lookup_dcookie", "nfsservctl", "_sysctl", "uselib",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	// Keys are not part of any namespace.
	"add_key", "request_key", "keyctl",
	// Descriptors and memory of other processes are theirs. Debuggers need others.
	"pidfd_getfd", "kcmp", "move_pages", "migrate_pages",
	// For programs of 16 bits.
	"modify_ldt", "vm86", "vm86old",
	// Files by handle ignore the directories above them.
	"open_by_handle_at", "fanotify_init",
	// The machine as a whole.
	"reboot", "swapon", "swapoff", "quotactl", "quotactl_fd", "syslog", "acct",
	"settimeofday", "clock_settime", "stime", "vhangup", "iopl", "ioperm",
}

// initPID is the first process of every pid namespace.
const initPID = 1

// namespaces are the clone and unshare flags that make one.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// Filter is the system call filter of every sandbox, as the array of
// instructions that bwrap's --seccomp reads. It is made for the machine this
// program was built for; programs of another system call ABI (32-bit ones) get
// ENOSYS for everything.
func Filter() ([]byte, error) {
	code, err := filter()
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "system call filter: %w", err)
	}
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, errdefs.New(errdefs.Internal, "system call filter: %w", err)
	}
	var out []byte
	for _, r := range raw {
		out = binary.NativeEndian.AppendUint16(out, r.Op)
		out = append(out, r.Jt, r.Jf)
		out = binary.NativeEndian.AppendUint32(out, r.K)
	}
	return out, nil
}

func filter() ([]bpf.Instruction, error) {
	machine, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	have := func(names ...string) (known []string) {
		for _, n := range names {
			if _, ok := machine.SyscallNames[n]; ok {
				known = append(known, n)
			}
		}
		return known
	}
	bits := func(argument uint32, value uint64) bpfseccomp.ArgumentConditions {
		return bpfseccomp.ArgumentConditions{{Argument: argument, Operation: bpfseccomp.BitsSet, Value: value}}
	}
	conditional := []bpfseccomp.NameWithConditions{
		{Name: "clone", Conditions: bits(0, namespaces)},
		{Name: "unshare", Conditions: bits(0, namespaces|unix.CLONE_NEWTIME)},
	}
	// A set-user-ID program in the workspace would be its owner's for everybody
	// who can reach it there, outside of any sandbox. To make one takes these
	// calls: a file that gets the bit when it is created is empty, and loses it
	// with the first byte. Set-group-ID stays, since directories of groups that
	// work together have it.
	for mode, names := range map[uint32][]string{1: {"chmod", "fchmod"}, 2: {"fchmodat", "fchmodat2"}} {
		for _, name := range have(names...) {
			conditional = append(conditional, bpfseccomp.NameWithConditions{Name: name, Conditions: bits(mode, unix.S_ISUID)})
		}
	}
	policy := bpfseccomp.Policy{
		DefaultAction: bpfseccomp.ActionAllow,
		Syscalls: []bpfseccomp.SyscallGroup{
			// Its flags lie in memory, where no filter can look; without it the
			// C library uses clone.
			{Names: have("clone3"), Action: fail(unix.ENOSYS)},
			{Names: have(refused...), NamesWithCondtions: conditional, Action: fail(unix.EPERM)},
		},
	}
	calls, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(machine.ID), SkipTrue: 1},
		bpf.RetConstant{Val: uint32(fail(unix.ENOSYS))},
		// What kernels will have that nobody has looked at is absent, as it is in
		// the kernels of today: programs go on without.
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: newest(machine), SkipFalse: 1},
		bpf.RetConstant{Val: uint32(fail(unix.ENOSYS))},
	}
	nr := func(name string) uint32 { return uint32(machine.SyscallNames[name]) }
	// Pushing input into a terminal; line disciplines, which load modules.
	code = append(code, unless(nr("ioctl"), 1, false, unix.EPERM, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD)...)
	// Other personalities weaken the layout of memory; asking and Linux's own stay.
	code = append(code, unless(nr("personality"), 0, true, unix.EPERM, 0, 0xffffffff)...)
	// The init of the sandbox has the payload's uid. A payload that traces it
	// stops what reaps processes and passes signals on.
	code = append(code, unless(nr("ptrace"), 1, false, unix.EPERM, initPID)...)
	code = append(code, unless(nr("process_vm_readv"), 0, false, unix.EPERM, initPID)...)
	code = append(code, unless(nr("process_vm_writev"), 0, false, unix.EPERM, initPID)...)
	// Address families that no network namespace confines, or that nobody needs.
	for _, name := range []string{"socket", "socketpair"} {
		code = append(code, unless(nr(name), 0, true, unix.EAFNOSUPPORT,
			unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)...)
	}
	return append(code, calls...), nil
}

// newest is the highest number of a system call that has a name here.
func newest(machine *arch.Info) uint32 {
	return uint32(slices.Max(slices.Collect(maps.Values(machine.SyscallNames))))
}

func fail(errno unix.Errno) bpfseccomp.Action {
	return bpfseccomp.ActionErrno | bpfseccomp.Action(errno)
}

// Offsets in the data a filter looks at.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// unless refuses system call nr with errno if its argument arg is one of values
// (only false), or if it is none of them (only true). The kernel takes these
// arguments as 32 bits, so exactly those are compared: a caller can set the
// others as it likes.
func unless(nr uint32, arg uint32, only bool, errno unix.Errno, values ...uint32) []bpf.Instruction {
	low := offArgs + 8*arg
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // big-endian
		low += 4
	}
	n := uint8(len(values))
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		// To the instruction behind the block.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: n + 3},
		bpf.LoadAbsolute{Off: low, Size: 4},
	}
	for i, v := range values {
		skip := n - uint8(i) // to the second return
		code = append(code, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: skip})
	}
	refuse := bpf.RetConstant{Val: uint32(fail(errno))}
	allow := bpf.RetConstant{Val: uint32(bpfseccomp.ActionAllow)}
	if only {
		return append(code, refuse, allow)
	}
	return append(code, allow, refuse)
}
