package edit

import (
	"os"
	"path"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/tsh/internal/tool/object"
	"golang.org/x/sys/unix"
)

// readOnly says why nothing can be written at the target: of the workspace that a
// control decides it, and which.
func (t *target) readOnly() error {
	top, in := entry(t.path)
	var fs unix.Statfs_t
	switch {
	case !in:
		return errdefs.New(errdefs.Denied, "%s: lies on a read-only file system", object.Show(t.path))
	case unix.Statfs(paths.InWorkspace, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0:
		return errdefs.New(errdefs.Denied, "%s: the whole workspace is read-only", object.Show(t.path))
	}
	return errdefs.New(errdefs.Denied, "%s: %s is read-only, because other programs act on it: "+
		"it is repository metadata, or the agent's control protect says so (without that control, a list of usual names)",
		object.Show(t.path), object.Show(top)).
		WithHint("leave it as it is, or ask the person you work for to change it, or the control protect")
}

// entry is the entry of the workspace that a path begins with.
func entry(p string) (top string, in bool) {
	if !path.IsAbs(p) {
		dir, err := os.Getwd()
		if err != nil {
			return "", false
		}
		p = path.Join(dir, p)
	}
	rest, in := strings.CutPrefix(path.Clean(p), paths.InWorkspace+"/")
	top, _, _ = strings.Cut(rest, "/")
	return top, in
}
