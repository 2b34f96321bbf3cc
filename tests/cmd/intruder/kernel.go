package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaces makes new ones in every way.
func namespaces() {
	for name, flag := range map[string]uintptr{
		"user": unix.CLONE_NEWUSER, "mount": unix.CLONE_NEWNS, "pid": unix.CLONE_NEWPID, "net": unix.CLONE_NEWNET, "ipc": unix.CLONE_NEWIPC,
		"uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP, "time": unix.CLONE_NEWTIME,
	} {
		if flag != unix.CLONE_NEWTIME { // of clone that would be a signal
			pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flag|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno == 0 && pid == 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
			report("clone "+name, failed(errno))
		}
		args := [8]uint64{uint64(flag)}
		args[4] = uint64(unix.SIGCHLD)
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
		if errno == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		report("clone3 "+name, failed(errno))
		// On a thread of its own, which ends with it: a user namespace takes one that is alone.
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			report("unshare "+name, unix.Unshare(int(flag)))
		}()
		<-done
	}
	for _, path := range []string{"/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/1/ns/mnt", "/proc/1/ns/pid"} {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, 0)
		}
		report("setns "+path, err)
	}
}

func failed(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// mounts mounts, unmounts and mounts anew, also where a new namespace would let
// it.
func mounts() {
	try := func(where string) {
		report(where+"mount a tmpfs", unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
		report(where+"mount /proc", unix.Mount("proc", "/tmp", "proc", 0, ""))
		report(where+"bind over /ctx", unix.Mount("/tmp", "/ctx", "", unix.MS_BIND, ""))
		for _, at := range []string{"/", "/ctx", "/usr", "/home/agent/session", "/workspace/.git"} {
			report(where+"remount "+at, unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND, ""))
			report(where+"unmount "+at, unix.Unmount(at, unix.MNT_DETACH))
		}
		_, err := unix.OpenTree(unix.AT_FDCWD, "/ctx", unix.OPEN_TREE_CLONE)
		report(where+"clone a tree", err)
		_, err = unix.Fsopen("tmpfs", 0)
		report(where+"open a file system", err)
		report(where+"change a mount's attributes", unix.MountSetattr(unix.AT_FDCWD, "/ctx", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}))
		report(where+"change the root", unix.Chroot("/workspace"))
		report(where+"pivot the root", unix.PivotRoot("/workspace", "/workspace"))
	}
	try("")
	if os.Getenv("INTRUDER_WITHIN") != "" {
		return
	}
	cmd := exec.Command("/proc/self/exe", "mounts")
	cmd.Env, cmd.Stdout = []string{"INTRUDER_WITHIN=1"}, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	report("begin a mount namespace", cmd.Run())
}

// keys leaves a secret where every process of the user could find it.
func keys() {
	for name, ring := range map[string]int{"session": unix.KEY_SPEC_SESSION_KEYRING, "user": unix.KEY_SPEC_USER_KEYRING} {
		_, err := unix.AddKey("user", "intruder", []byte("told"), ring)
		report("keep a key in the keyring of the "+name, err)
	}
	_, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", "intruder", 0)
	report("find a key", err)
}

// pushInput types into terminals: one of its own, and what there is.
func pushInput() {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		var n int
		if n, err = unix.IoctlGetInt(master, unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
		}
		var slave int
		if err == nil {
			slave, err = unix.Open("/dev/pts/"+strconv.Itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		}
		if err == nil {
			unix.Setsid()
			unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0)
			err = push(slave)
		}
	}
	report("type into a terminal of its own", err)
	for fd := range 3 {
		report(fmt.Sprint("type into descriptor ", fd), push(fd))
	}
	others, _ := filepath.Glob("/dev/pts/[0-9]*")
	for _, path := range append(others, "/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1") {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = push(fd)
		}
		report("type into "+path, err)
	}
}

func push(fd int) error {
	key := byte('x')
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&key)))
	return failed(errno)
}

// fork makes n processes, a bomb if nothing holds them, and stays until a FIFO
// ends.
func fork(n int, fifo string) {
	made, last := 0, error(nil)
	for range n {
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno != 0 {
			last = errno
			break
		}
		if pid == 0 {
			for { // waits for its end
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		made++
	}
	fmt.Println("processes", made)
	report(fmt.Sprintf("fork %d", n), last)
	os.ReadFile(fifo)
}
