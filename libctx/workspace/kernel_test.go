package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// TestKernelsOwn: no workspace is where the kernel keeps its state, by whatever
// name.
func TestKernelsOwn(t *testing.T) {
	dir := tree(t, "link -> /proc/self", "plain/")
	at := []string{"/proc", "/proc/self", "/proc/sys/kernel", "/sys", "/sys/kernel", "/dev", "/dev/pts", "/dev/fd", dir + "/link"}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		switch kind, _, _ := strings.Cut(after, " "); kind {
		case "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "debugfs", "tracefs", "securityfs", "bpf", "configfs",
			"pstore", "efivarfs", "fusectl", "mqueue", "selinuxfs", "binfmt_misc":
			f := strings.Fields(before)
			var st unix.Statx_t
			err := unix.Statx(unix.AT_FDCWD, f[4], unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st)
			if err == nil && fmt.Sprint(st.Mnt_id) == f[0] { // else it is covered by another
				at = append(at, f[4])
			}
		}
	}
	for _, dir := range at {
		if real, err := filepath.EvalSymlinks(dir); err != nil || !isDir(real) {
			continue // this machine, or this user, has none
		}
		_, err := Resolve(dir, asuser.Self(), nil, Protect{})
		if !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), fmt.Sprintf("%q", dir)) || errdefs.HintOf(err) == "" {
			t.Errorf("%s: %v, hint %q", dir, err, errdefs.HintOf(err))
		}
	}
	if _, err := Resolve(dir+"/plain", asuser.Self(), nil, Protect{}); err != nil {
		t.Error(err)
	}
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
