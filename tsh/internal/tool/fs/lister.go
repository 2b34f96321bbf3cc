package fs

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
	"golang.org/x/sys/unix"
)

// lister walks directories by descriptor, each sorted by the bytes of the names,
// a directory's entries right behind it. It keeps one descriptor open a level,
// and of each directory no more names than can still be shown.
type lister struct {
	ctx   context.Context
	out   *tool.Output
	base  string // cleaned path of the listed directory
	depth int    // levels to list
	left  int    // entries that may still be shown

	shown  int
	last   string   // path of the last entry shown
	cut    bool     // more entries exist than are shown
	deeper bool     // there are directories below the last level that can be listed
	closed []string // directories that could not be entered, and why
}

// minLine is the size of the shortest line an entry can have.
const minLine = len("dir\t0000\t0\t1970-01-01T00:00:00Z\tx\n")

// room is the number of bytes left for lines.
func (l *lister) room() int { return libctx.MaxToolResult - tool.Reserve - l.out.Len() }

// directory lists an open directory, which it closes; rel is its path below
// base. Of its names those before after[0] are skipped, that one is entered only
// for what follows the rest of after. It returns the number of entries the
// directory has.
func (l *lister) directory(dir *os.File, rel string, after []string, level int) (int, error) {
	defer dir.Close()
	from := ""
	if len(after) > 0 {
		from = after[0]
	}
	names, total, more, err := least(l.ctx, dir, from, min(l.left, l.room()/minLine)+1)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		var below []string
		if name == from {
			below = after[1:]
		}
		if err := l.entry(dir, name, path.Join(rel, name), name == from, below, level); err != nil || l.cut {
			return total, err
		}
	}
	l.cut = l.cut || more
	return total, nil
}

// entry shows one entry, unless it is known already, and what is below it.
func (l *lister) entry(dir *os.File, name, rel string, known bool, after []string, level int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil // removed meanwhile
		}
		return err
	}
	if !known {
		p := object.Join(l.base, rel)
		line := fmt.Sprintf("%s\t%s\t%d\t%s\t%s\n", object.Kind(st.Mode), mode(st), st.Size, when(st.Mtim), object.Show(p))
		if l.left == 0 || len(line) > l.room() {
			l.cut = true
			return nil
		}
		l.out.WriteString(line)
		l.left--
		l.shown++
		l.last = p
	}
	if object.Kind(st.Mode) != "dir" || name == ".git" {
		return nil
	}
	if level >= l.depth {
		l.deeper = l.deeper || level == libctx.MaxListDepth
		return nil
	}
	return l.descend(dir, name, rel, after, level)
}

// descend lists the directory name of dir. One that can not be entered is noted,
// one that is no stored directory is left alone.
func (l *lister) descend(dir *os.File, name, rel string, after []string, level int) error {
	fd, err := object.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		if len(l.closed) < 8 && !errors.Is(err, unix.ENOENT) {
			l.closed = append(l.closed, object.Show(object.Join(l.base, rel))+": "+err.Error())
		}
		return nil
	}
	if object.Pseudo(fd) {
		return unix.Close(fd)
	}
	_, err = l.directory(os.NewFile(uintptr(fd), name), rel, after, level+1)
	return err
}

// least reads a whole directory and returns, sorted, the first max of its names
// that are not before from, whether there are more, and the number of all names.
func least(ctx context.Context, dir *os.File, from string, max int) (names []string, total int, more bool, err error) {
	var kept tallest
	for {
		batch, err := dir.Readdirnames(1024)
		for _, name := range batch {
			total++
			switch {
			case name < from:
			case len(kept) < max:
				heap.Push(&kept, name)
			case name < kept[0]:
				kept[0], more = name, true
				heap.Fix(&kept, 0)
			default:
				more = true
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(kept)
			return kept, total, more, nil
		case err != nil:
			return nil, 0, false, err
		case ctx.Err() != nil:
			return nil, 0, false, context.Cause(ctx)
		}
	}
}

// tallest is a heap with the greatest string first.
type tallest []string

func (t tallest) Len() int           { return len(t) }
func (t tallest) Less(i, j int) bool { return strings.Compare(t[i], t[j]) > 0 }
func (t tallest) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *tallest) Push(x any)        { *t = append(*t, x.(string)) }
func (t *tallest) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
