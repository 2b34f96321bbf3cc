// Package spawn is the only place of ctx that starts programs: the daemon in
// the background, and short trials for ctx doctor.
package spawn

import (
	"os"
	"path/filepath"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Find looks for a program of the suite: beside the running executable, in the
// tree's bin, then where packages put it. Never along PATH. The result is
// absolute; a program found nowhere is errdefs.Unavailable.
func Find(exe string, l paths.Layout, name string) (string, error) {
	dirs := []string{l.Bin(""), "/usr/lib/cortexfs", "/usr/bin"}
	if exe != "" {
		dirs = append([]string{filepath.Dir(exe)}, dirs...)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errdefs.New(errdefs.Unavailable, "%s is not installed: it is neither beside ctx nor in %s", name, l.Bin("")).
		WithHint("install the whole suite, or put %s beside ctx", name)
}
