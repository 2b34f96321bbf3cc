package spill

import (
	"errors"
	"io/fs"
	"path"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"golang.org/x/sys/unix"
)

// old is a file of an earlier output.
type old struct {
	path string
	size int64
	when int64
}

// room removes the oldest files until another one has room: in the directory of
// its session, and among those of all sessions beside it.
func room(home *atomicfile.Dir, dir string) error {
	own, err := files(home, dir)
	if err != nil {
		return err
	}
	if err := evict(home, own, libctx.MaxSpillFiles-1, libctx.MaxSpillBytes-libctx.MaxSpillFile); err != nil {
		return err
	}
	sessions, err := home.ReadDir(path.Dir(dir))
	if err != nil {
		return err
	}
	var all []old
	for _, e := range sessions {
		if !e.IsDir() {
			continue
		}
		some, err := files(home, path.Join(path.Dir(dir), e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = append(all, some...)
	}
	return evict(home, all, len(all), libctx.MaxSpillAll-libctx.MaxSpillFile)
}

// files lists the outputs in a directory.
func files(home *atomicfile.Dir, dir string) ([]old, error) {
	entries, err := home.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []old
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if st, err := home.Lstat(p); err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			list = append(list, old{p, st.Size, st.Mtim.Nano()})
		}
	}
	return list, nil
}

// evict removes the oldest until there are no more than so many, of so many
// bytes.
func evict(home *atomicfile.Dir, list []old, number int, bytes int64) error {
	total := int64(0)
	for _, f := range list {
		total += f.size
	}
	slices.SortFunc(list, func(a, b old) int { return int(min(max(a.when-b.when, -1), 1)) })
	for ; len(list) > 0 && (len(list) > number || total > bytes); list = list[1:] {
		if err := home.Remove(list[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= list[0].size
	}
	return nil
}
