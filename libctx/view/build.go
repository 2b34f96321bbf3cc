package view

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"

	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// errChanged: a source is not what the scan saw; scan again.
var errChanged = errors.New("a file changed while it was copied")

// build makes base/KEY unless it is there. It is made under another name and
// renamed, so that it is there whole or not at all; who loses the race to
// rename uses the winner's, which has the same key and so the same content.
func (a *Agent) build(l paths.Layout, root, base *atomicfile.Dir, src *sources) error {
	if done, err := isBuilt(base, src.key); done || err != nil {
		return err
	}
	var random [8]byte
	rand.Read(random[:])
	temp := src.key + "." + hex.EncodeToString(random[:])
	defer base.RemoveAll(temp)
	if err := mkdir(base, temp); err != nil {
		return err
	}
	to, err := base.Sub(temp)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := a.fill(l, root, &builder{dir: to}, src); err != nil {
		return err
	}
	// A directory that is not empty is never replaced by rename.
	err = unix.Renameat(base.FD(), temp, base.FD(), src.key)
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) {
		_, err = isBuilt(base, src.key)
		return err
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "view %s: %w", joinPath(base, src.key), err)
	}
	return nil
}

func isBuilt(base *atomicfile.Dir, key string) (bool, error) {
	st, err := base.Lstat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !isDir(&st) || st.Uid != selfUID():
		return false, errdefs.New(errdefs.Denied, "%s: is not a directory of ours", joinPath(base, key)).WithHint("remove it")
	}
	return true, nil
}

// fill writes the view: the skeleton, the agent's own files, its tools.
func (a *Agent) fill(l paths.Layout, root *atomicfile.Dir, b *builder, src *sources) error {
	own := "agent/" + string(a.Name)
	dirs := []string{"bin", "agent", own + ".d", "model", "tool", "home", "shared"}
	for _, d := range a.Path {
		dirs = append(dirs, strings.TrimPrefix(d, paths.InRoot+"/"))
	}
	for _, d := range dirs {
		if err := b.mkdirAll(d); err != nil {
			return err
		}
	}
	// Mount points for the programs every sandbox gets.
	for _, name := range []string{"bin/ctxtool", "bin/tsh", "bin/ctxterm"} {
		if err := b.write(name, nil, 0o555); err != nil {
			return err
		}
	}
	if err := a.copyControl(l, root, b, src); err != nil {
		return err
	}
	if err := copyStatus(root, b); err != nil {
		return err
	}
	if src.executable {
		f, st, err := a.openExecutable(root)
		if err != nil {
			return err
		}
		err = b.copy(own, f, &st)
		f.Close()
		if err != nil {
			return err
		}
	}
	for _, t := range src.tools {
		if err := a.copyTool(root, b, t); err != nil {
			return err
		}
	}
	return nil
}
