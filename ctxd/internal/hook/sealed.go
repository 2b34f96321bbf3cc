package hook

import (
	"errors"
	"os"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// sealed copies a hook into memory that nobody can write any more, not even its
// owner, as whom it runs: a descriptor of the file itself would be a way from the
// sandbox to the file. The caller closes it.
func sealed(h *view.Hook) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("hook", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // a kernel that knows no other memory
		fd, err = unix.MemfdCreate("hook", flags)
	}
	if err != nil {
		e := errdefs.New(errdefs.KindOf(err), "memory for it: %w", err)
		return nil, e.WithHint("hooks run from memory: sysctl vm.memfd_noexec must not be 2")
	}
	f := os.NewFile(uintptr(fd), "hook")
	err = h.Copy(f)
	if err == nil {
		err = unix.Fchmod(fd, 0o555)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, errdefs.New(errdefs.KindOf(err), "copy: %w", err)
	}
	return f, nil
}
