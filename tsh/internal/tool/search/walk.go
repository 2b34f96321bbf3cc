package search

import (
	"container/heap"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"
)

// walk goes through a directory tree in the order of the paths and gives every
// file that is to be searched to emit, until that returns false.
type walk struct {
	ctx    context.Context
	glob   string // "" takes every file
	not    bool   // glob excludes
	hidden bool
	ignore bool
	batch  int // entries that are sorted at once; of a larger directory the rest is read again
	emit   func(dir *shared, name, rel string) bool

	closed int  // directories that can not be read
	deeper bool // there are directories below the last level that is searched
	stop   bool
}

// shared is an open directory that lives as long as somebody uses it.
type shared struct {
	fd    int
	users atomic.Int32
}

func (s *shared) release() {
	if s.users.Add(-1) == 0 {
		unix.Close(s.fd)
	}
}

// directory searches an open directory, which it takes over. Rel is its path
// below the one that was named, from the path from the top of the ignore rules
// on, both with a slash behind them or empty.
func (w *walk) directory(fd int, rel, from string, r *rules, level int) {
	dir := &shared{fd: fd}
	dir.users.Store(1)
	defer dir.release()
	if w.ignore {
		r = r.load(fd, len(from))
	}
	for after := ""; !w.stop; {
		entries, more, err := batch(w.ctx, fd, after, w.batch)
		if err != nil {
			w.closed++
			return
		}
		for _, e := range entries {
			if w.entry(dir, e, rel, from, r, level); w.stop {
				return
			}
		}
		if !more {
			return
		}
		after = entries[len(entries)-1].name
	}
}

func (w *walk) entry(dir *shared, e entry, rel, from string, r *rules, level int) {
	isDir := e.kind == fs.ModeDir
	switch {
	case !isDir && e.kind != 0, e.name == ".git", !w.hidden && e.name[0] == '.':
		return
	case !w.selected(e.name, rel+e.name, isDir), w.ignore && r.ignored(from+e.name, isDir):
		return
	case !isDir:
		dir.users.Add(1)
		w.stop = !w.emit(dir, e.name, rel+e.name)
		return
	case level >= libctx.MaxListDepth:
		w.deeper = true
		return
	}
	fd, err := object.Openat(dir.fd, e.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT): // removed meanwhile
	case err != nil:
		w.closed++
	case object.Pseudo(fd):
		unix.Close(fd)
	default:
		w.directory(fd, rel+e.name+"/", from+e.name+"/", r, level+1)
	}
}

// selected asks the glob of the call: without a slash it is about names, else
// about paths. One that excludes is asked about directories too.
func (w *walk) selected(name, rel string, isDir bool) bool {
	if w.glob == "" || isDir && !w.not {
		return true
	}
	what := name
	if strings.Contains(w.glob, "/") {
		what = rel
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(w.glob, "/"), what) != w.not
}

// entry is a name in a directory and its type, 0 for a regular file.
type entry struct {
	name string
	kind fs.FileMode
}

// batch returns, sorted, the first max entries of a directory behind the name
// after, and whether there are more.
func batch(ctx context.Context, fd int, after string, max int) ([]entry, bool, error) {
	again, err := object.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, false, err
	}
	// By this name the type of an entry can be asked for where the directory
	// itself does not tell it.
	dir := os.NewFile(uintptr(again), "/proc/self/fd/"+strconv.Itoa(again))
	defer dir.Close()
	var kept last
	more := false
	for {
		some, err := dir.ReadDir(1024)
		for _, d := range some {
			e := entry{d.Name(), d.Type()}
			switch {
			case e.name <= after:
			case len(kept) < max:
				if kept = append(kept, e); len(kept) == max {
					heap.Init(&kept)
				}
			default:
				if more = true; e.name < kept[0].name {
					kept[0] = e
					heap.Fix(&kept, 0)
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(kept, func(a, b entry) int { return strings.Compare(a.name, b.name) })
			return kept, more, nil
		case err != nil:
			return nil, false, err
		case ctx.Err() != nil:
			return nil, false, context.Cause(ctx)
		}
	}
}

// last is a heap with the last name first.
type last []entry

func (l last) Len() int           { return len(l) }
func (l last) Less(i, j int) bool { return l[i].name > l[j].name }
func (l last) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *last) Push(x any)        { *l = append(*l, x.(entry)) }
func (l *last) Pop() any {
	e := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return e
}

// shown is the path of a file as the result names it. A colon in it could be
// taken for the one behind it.
func shown(base, rel string) string {
	p := base
	if rel != "" {
		p = object.Join(path.Clean(base), rel)
	}
	if s := object.Show(p); s != p || !strings.Contains(p, ":") {
		return s
	}
	return strconv.Quote(p)
}
