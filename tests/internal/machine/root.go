package machine

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cache holds the roots of machines and the folders of those that run.
const cache = "/var/cache/cortexfs-tests"

// The recipe of a root. It is made anew whenever one of these changes.
const (
	release  = "bookworm"
	packages = "systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,bubblewrap,procps,git"
	// finish runs in the new root. A manager without sessions stops at once, not
	// after ten seconds: tests wait for its end.
	finish = `
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer console-getty.service
mkdir -p /etc/systemd/logind.conf.d
printf '[Login]\nUserStopDelaySec=0\n' >/etc/systemd/logind.conf.d/tests.conf
rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/*
`
)

// root returns the folder of a complete root that this process may use until it
// closes the lock, and makes it first where there is none.
func root() (dir string, lock *os.File, err error) {
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256([]byte(release + "\n" + packages + "\n" + finish))
	dir = filepath.Join(cache, fmt.Sprintf("root-%x", sum[:6]))
	lock, err = os.OpenFile(dir+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := prepare(dir, lock); err != nil {
		lock.Close()
		return "", nil, err
	}
	return dir, lock, nil
}

func prepare(dir string, lock *os.File) error {
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := debootstrap(dir); err != nil {
			return err
		}
		forget(dir)
	} else if err != nil {
		return err
	}
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH)
}

// debootstrap makes a root under another name first, so that what has its own is
// whole.
func debootstrap(dir string) error {
	making := dir + ".making"
	if err := os.RemoveAll(making); err != nil { // no mount can be below: they were in a namespace that is gone
		return err
	}
	script := apart + `debootstrap --variant=minbase --include="$1" "$2" "$3" && chroot "$3" sh -euc "$4"`
	cmd := exec.Command("/bin/sh", "-euc", script, "sh", packages, release, making, finish)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasSuffix(strings.ToLower(name), "_proxy") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the death signal is for the end of the thread
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("debootstrap %s: %w: %s", release, err, tail(out.Bytes()))
	}
	return os.Rename(making, dir)
}

// forget removes roots of other recipes that nobody uses. Their locks stay:
// somebody may be waiting for one.
func forget(dir string) {
	locks, _ := filepath.Glob(filepath.Join(cache, "root-*.lock"))
	for _, path := range locks {
		other := strings.TrimSuffix(path, ".lock")
		if other == dir {
			continue
		}
		if lock := free(path); lock != nil {
			os.RemoveAll(other)
			os.RemoveAll(other + ".making")
			lock.Close()
		}
	}
}

// free locks a file that nobody else has locked, or returns nil.
func free(path string) *os.File {
	lock, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		lock.Close()
		return nil
	}
	return lock
}

// tail is the end of a long text.
func tail(b []byte) []byte { return bytes.TrimSpace(b[max(0, len(b)-3000):]) }
