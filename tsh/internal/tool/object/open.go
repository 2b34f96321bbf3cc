package object

import (
	"errors"
	"os"
	"path"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// resolve is how every path is walked: no link is followed, neither in the
// middle nor at the end, and none of the magic ones of /proc.
const resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Openat opens p, relative to an open directory, following no link at all. The
// descriptor is the caller's; errors are the kernel's.
func Openat(dir int, p string, flags uint64) (int, error) { return Create(dir, p, flags, 0) }

// Create is Openat with the mode of a file that it creates, less the umask.
func Create(dir int, p string, flags uint64, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: uint64(mode), Resolve: resolve}
	for {
		fd, err := unix.Openat2(dir, p, &how)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// Locate finds the object at p without opening it for reading or writing: a
// FIFO, device or socket is not touched. If p is a link, the link is the object.
// The descriptor is the caller's.
func Locate(p string) (int, unix.Stat_t, error) {
	var st unix.Stat_t
	if err := CheckCwd(p); err != nil {
		return -1, st, err
	}
	fd, err := Openat(unix.AT_FDCWD, p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return -1, st, Explain(p, err)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, st, Explain(p, err)
	}
	return fd, st, nil
}

// Open opens a regular file of a real file system for reading. The returned
// file is the caller's.
func Open(p string) (*os.File, unix.Stat_t, error) {
	fd, st, err := Locate(p)
	if err != nil {
		return nil, st, err
	}
	defer unix.Close(fd)
	if err := CheckReadable(p, fd, st); err != nil {
		return nil, st, err
	}
	f, err := Reopen(p, st, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	return f, st, err
}

// Reopen opens p with flags and makes sure that it is still the located object.
func Reopen(p string, located unix.Stat_t, flags uint64) (*os.File, error) {
	fd, err := Openat(unix.AT_FDCWD, p, flags)
	if err != nil {
		return nil, Explain(p, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Dev != located.Dev || st.Ino != located.Ino {
		unix.Close(fd)
		return nil, errdefs.New(errdefs.Busy, "%s: was replaced while it was opened", Show(p))
	}
	return os.NewFile(uintptr(fd), p), nil
}

// CheckReadable refuses everything but a regular file of a real file system, by kind.
func CheckReadable(p string, fd int, st unix.Stat_t) error {
	switch k := Kind(st.Mode); k {
	case "file":
	case "dir":
		return errdefs.New(errdefs.Invalid, "%s: is a directory", Show(p)).WithHint("list it with fs.list")
	case "link":
		return errdefs.New(errdefs.Invalid, "%s: is a symbolic link, and links are not followed", Show(p)).
			WithHint("fs.stat shows its target")
	default:
		return errdefs.New(errdefs.Invalid, "%s: is a %s, not a regular file", Show(p), words[k])
	}
	if Pseudo(fd) {
		return errdefs.New(errdefs.Invalid, "%s: is a file of the kernel that may have no end, not a stored file", Show(p))
	}
	return nil
}

// Kind is the one word for a type of file.
func Kind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "file"
	case unix.S_IFDIR:
		return "dir"
	case unix.S_IFLNK:
		return "link"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return "char"
	case unix.S_IFBLK:
		return "block"
	}
	return "unknown"
}

// words are longer names of kinds, for messages.
var words = map[string]string{
	"fifo": "FIFO", "socket": "socket", "char": "character device", "block": "block device", "unknown": "special file",
}

// Pseudo reports whether the object lies on a file system that the kernel makes
// up: its files look regular and may block, have no end, or act when read.
func Pseudo(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return true
	}
	switch uint32(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
		unix.BPF_FS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC:
		return true
	}
	return false
}

// Explain says in one line what failed at p.
func Explain(p string, err error) error {
	shown := Show(p)
	switch {
	case errors.Is(err, unix.ELOOP):
		if at, ok := linkIn(p); ok {
			return errdefs.New(errdefs.Invalid, "%s: %s is a symbolic link, and links are not followed", shown, Show(at))
		}
		return errdefs.New(errdefs.Invalid, "%s: goes through a symbolic link, and links are not followed", shown)
	case errors.Is(err, unix.ENOENT) && CheckCwd(p) != nil:
		return CheckCwd(p)
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %w", shown, err)
}

// linkIn finds the first component of p that is a link now, for the message.
func linkIn(p string) (string, bool) {
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' {
			continue
		}
		at := strings.TrimRight(p[:i], "/")
		var st unix.Stat_t
		if at != "" && unix.Lstat(at, &st) == nil && Kind(st.Mode) == "link" {
			return at, true
		}
	}
	return "", false
}

// CheckCwd refuses a relative path if the current directory was removed: what is
// left of it can be opened, is empty for ever and takes no new file.
func CheckCwd(p string) error {
	if path.IsAbs(p) {
		return nil
	}
	if _, err := unix.Getcwd(make([]byte, unix.PathMax)); !errors.Is(err, unix.ENOENT) {
		return nil
	}
	return errdefs.New(errdefs.NotFound, "%s: the current directory does not exist any more", Show(p)).
		WithHint("absolute paths work")
}
