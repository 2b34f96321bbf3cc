package workspace

import "golang.org/x/sys/unix"

// kernelTypes are the file systems that show and set the state of the kernel.
var kernelTypes = map[uint32]bool{
	unix.PROC_SUPER_MAGIC:     true,
	unix.SYSFS_MAGIC:          true,
	unix.CGROUP_SUPER_MAGIC:   true,
	unix.CGROUP2_SUPER_MAGIC:  true,
	unix.DEVPTS_SUPER_MAGIC:   true,
	unix.DEBUGFS_MAGIC:        true,
	unix.TRACEFS_MAGIC:        true,
	unix.SECURITYFS_MAGIC:     true,
	unix.SELINUX_MAGIC:        true,
	unix.SMACK_MAGIC:          true,
	unix.BPF_FS_MAGIC:         true,
	unix.PSTOREFS_MAGIC:       true,
	unix.EFIVARFS_MAGIC:       true,
	unix.BINFMTFS_MAGIC:       true,
	unix.RDTGROUP_SUPER_MAGIC: true,
	unix.XENFS_SUPER_MAGIC:    true,
	0x62656570:                true, // configfs
	0x65735543:                true, // fusectl
	0x19800202:                true, // mqueue
}

// MadeByKernel reports whether a file system shows the state of the kernel and
// stores nothing.
func MadeByKernel(fs unix.Statfs_t) bool {
	return kernelTypes[uint32(fs.Type)] // which has another width on every machine
}

// madeByKernel reports whether a directory, whose facts st are, is on a file
// system that the kernel fills. The one of /dev calls itself a tmpfs, as a
// scratch directory does, so it is known by being /dev's.
func madeByKernel(dir string, st unix.Stat_t) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false, err
	}
	if MadeByKernel(fs) {
		return true, nil
	}
	var dev, root unix.Stat_t
	if unix.Lstat("/dev", &dev) != nil || dev.Dev != st.Dev {
		return false, nil
	}
	if dev.Ino == st.Ino {
		return true, nil
	}
	// A /dev without a file system of its own says nothing about others on it.
	return unix.Lstat("/", &root) == nil && root.Dev != dev.Dev, nil
}
