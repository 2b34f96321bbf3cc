package seccomp

import (
	"encoding/binary"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestFilter asks the filter, run by the interpreter of the bpf package, about
// calls. The real kernel is asked by the launcher's tests.
func TestFilter(t *testing.T) {
	code, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	if len(code) > 4096 {
		t.Fatalf("%d instructions, the kernel takes 4096", len(code))
	}
	// The interpreter reads its input big-endian, the kernel reads words of the
	// machine: hand the words over as the interpreter wants them.
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := arch.GetInfo("")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id uint32, nr int, args ...uint64) uint32 {
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[offNumber:], uint32(nr))
		binary.BigEndian.PutUint32(data[offArch:], id)
		for i, a := range args {
			low, high := uint32(a), uint32(a>>32)
			if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
				low, high = high, low
			}
			binary.BigEndian.PutUint32(data[offArgs+8*i:], low)
			binary.BigEndian.PutUint32(data[offArgs+8*i+4:], high)
		}
		r, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(r)
	}
	native := uint32(machine.ID)
	number := func(name string) int {
		n, ok := machine.SyscallNames[name]
		if !ok {
			t.Fatalf("%s is not known here", name)
		}
		return n
	}
	const allow = 0x7fff0000
	eperm, enosys, family := uint32(fail(unix.EPERM)), uint32(fail(unix.ENOSYS)), uint32(fail(unix.EAFNOSUPPORT))
	const high = 1 << 32
	for _, c := range []struct {
		name string
		args []uint64
		want uint32
	}{
		{"read", nil, allow}, {"execve", nil, allow}, {"ptrace", nil, allow}, {"mount", nil, eperm}, {"bpf", nil, eperm},
		{"clone3", nil, enosys}, {"clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow}, {"clone", []uint64{unix.CLONE_NEWUSER}, eperm},
		{"unshare", []uint64{unix.CLONE_FILES}, allow}, {"unshare", []uint64{unix.CLONE_NEWNS | unix.CLONE_FILES}, eperm},
		{"ioctl", []uint64{0, unix.TIOCSTI}, eperm}, {"ioctl", []uint64{0, unix.TIOCSTI | high}, eperm},
		{"ioctl", []uint64{0, unix.TIOCLINUX}, eperm}, {"ioctl", []uint64{0, unix.TIOCSETD}, eperm}, {"ioctl", []uint64{unix.TIOCSTI, unix.TCGETS}, allow},
		{"personality", []uint64{0}, allow}, {"personality", []uint64{0xffffffff}, allow}, {"personality", []uint64{^uint64(0)}, allow},
		{"personality", []uint64{0x40000}, eperm},
		{"ptrace", []uint64{unix.PTRACE_ATTACH, 1}, eperm}, {"ptrace", []uint64{unix.PTRACE_ATTACH, 1 | high}, eperm},
		{"ptrace", []uint64{unix.PTRACE_ATTACH, 7}, allow}, {"process_vm_readv", []uint64{7}, allow}, {"process_vm_writev", []uint64{1}, eperm},
		{"socket", []uint64{unix.AF_UNIX}, allow}, {"socket", []uint64{unix.AF_INET6}, allow}, {"socket", []uint64{unix.AF_NETLINK}, allow},
		{"socketpair", []uint64{unix.AF_UNIX}, allow}, {"socketpair", []uint64{unix.AF_TIPC}, family},
		{"fchmod", []uint64{3, 0o755}, allow}, {"fchmod", []uint64{3, 0o2775}, allow}, {"fchmod", []uint64{3, 0o4755}, eperm},
		{"fchmodat", []uint64{0, 0, 0o700}, allow}, {"fchmodat", []uint64{0, 0, 0o6711 | high}, eperm}, {"fchmodat2", []uint64{0, 0, 0o4000}, eperm},
		{"socket", []uint64{unix.AF_VSOCK}, family}, {"socket", []uint64{unix.AF_ALG | high}, family}, {"socket", []uint64{unix.AF_PACKET}, family},
	} {
		if got := ask(native, number(c.name), c.args...); got != c.want {
			t.Errorf("%s%v: %#x, want %#x", c.name, c.args, got, c.want)
		}
	}
	if got := ask(native^1, number("read")); got != enosys {
		t.Errorf("another ABI: %#x", got)
	}
	for _, nr := range []int{int(newest(machine)) + 1, 5000, 1 << 30} {
		if got := ask(native, nr); got != enosys {
			t.Errorf("system call %d, of a kernel to come: %#x", nr, got)
		}
	}
	// Every name is one that some Linux has; a misspelled one would be left out
	// in silence.
	for _, name := range refused {
		known := false
		for _, a := range []*arch.Info{arch.X86_64, arch.I386, arch.ARM, arch.AARCH64} {
			_, ok := a.SyscallNames[name]
			known = known || ok
		}
		if !known {
			t.Errorf("no system call is called %s", name)
		}
		if n, ok := machine.SyscallNames[name]; ok && ask(native, n) != eperm {
			t.Errorf("%s is not refused", name)
		}
	}
}
