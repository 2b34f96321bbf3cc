package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// within is a place in a file system.
type within struct {
	dev  string // "8:1", as mountinfo writes it
	path string // from the root of the file system
}

func (a within) overlaps(b within) bool {
	return a.dev == b.dev && (paths.Below(a.path, b.path) || paths.Below(b.path, a.path))
}

// mounts is the mount table of this process, by mount id.
type mounts struct{ byID map[uint64]mounted }

type mounted struct {
	dev   string
	root  string // what of the file system is mounted
	point string // and where
}

func readMounts() (*mounts, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "read the mount table: %w", err)
	}
	return &mounts{parseMounts(text)}, nil
}

// refresh reads the table again if dir is on a mount that is not in it.
func (m *mounts) refresh(dir string) error {
	if _, ok := m.within(dir); ok {
		return nil
	}
	again, err := readMounts()
	if err == nil {
		m.byID = again.byID
	}
	return err
}

// within finds where in its file system a canonical path is.
func (m *mounts) within(path string) (within, bool) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st); err != nil ||
		st.Mask&unix.STATX_MNT_ID == 0 {
		return within{}, false
	}
	on, ok := m.byID[st.Mnt_id]
	if !ok || !paths.Below(path, on.point) {
		return within{}, false
	}
	rel := strings.TrimPrefix(path[len(on.point):], "/")
	if on.point == "/" {
		rel = path[1:]
	}
	return within{on.dev, filepath.Join(on.root, rel)}, true
}

// parseMounts reads /proc/self/mountinfo: id, parent id, device, root, mount
// point and more. Lines of another form are left out.
func parseMounts(text []byte) map[uint64]mounted {
	all := map[uint64]mounted{}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) < 6 {
			continue
		}
		id, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil || !strings.HasPrefix(f[4], "/") {
			continue
		}
		all[id] = mounted{dev: f[2], root: unescape(f[3]), point: unescape(f[4])}
	}
	return all
}

// unescape undoes the octal escapes of mountinfo (space, TAB, LF, backslash).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
