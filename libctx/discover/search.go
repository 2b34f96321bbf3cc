package discover

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Place is an open directory that may hold rules and skills.
type Place struct {
	*atomicfile.Dir
	Path    string // as seen inside
	Project bool   // in the workspace
}

// Search opens the places and gives those there are to fn: the machine's, the
// agent's home, then the workspace from its top down to cwd. fn runs with the
// identity's rights and keeps no Place. Warnings are those of the search and
// those fn gave to warn, the first libctx.MaxWarnings of them.
func (p Places) Search(fn func(places []Place, warn func(inside string, err error))) []Warning {
	var list warnings
	err := p.ID.Do(func() error {
		places := p.open(list.add)
		defer func() {
			for _, pl := range places {
				pl.Close()
			}
		}()
		fn(places, list.add)
		return nil
	})
	if err != nil {
		list.add("rules and skills", err)
	}
	return list.done()
}

func (p Places) open(warn func(string, error)) []Place {
	var places []Place
	for _, fixed := range []struct{ host, inside string }{{p.Global, Global}, {p.Home, paths.InHome}} {
		if fixed.host == "" {
			continue
		}
		if d, err := atomicfile.OpenDir(fixed.host); err != nil {
			warn(fixed.inside, err)
		} else {
			places = append(places, Place{Dir: d, Path: fixed.inside})
		}
	}
	if p.Workspace.Dir == "" {
		return places
	}
	top, err := p.workspace()
	if err != nil {
		warn(paths.InWorkspace, err)
		return places
	}
	places = append(places, Place{Dir: top, Path: paths.InWorkspace, Project: true})
	for _, rel := range below(p.Cwd, warn) {
		inside := path.Join(paths.InWorkspace, rel)
		d, err := top.Sub(rel)
		if err != nil {
			warn(inside, err)
			break
		}
		places = append(places, Place{Dir: d, Path: inside, Project: true})
	}
	return places
}

// workspace opens the directory that was checked to be one.
func (p Places) workspace() (*atomicfile.Dir, error) {
	d, err := atomicfile.OpenDir(p.Workspace.Dir)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(d.FD(), &st)
	if err == nil && (uint64(st.Dev) != p.Workspace.Dev || st.Ino != p.Workspace.Ino) {
		err = errors.New("is another directory by now")
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// below are the directories on the way from the workspace to cwd, relative to
// it, the outermost first.
func below(cwd string, warn func(string, error)) []string {
	rel, ok := strings.CutPrefix(path.Clean(cwd), paths.InWorkspace+"/")
	if !ok {
		return nil
	}
	var dirs []string
	for at := 0; at < len(rel); at++ {
		if len(dirs) == libctx.MaxRuleDirs {
			warn(cwd, fmt.Errorf("is more than %d directories deep", libctx.MaxRuleDirs))
			return dirs
		}
		if i := strings.IndexByte(rel[at:], '/'); i >= 0 {
			at += i
		} else {
			at = len(rel)
		}
		dirs = append(dirs, rel[:at])
	}
	return dirs
}

// Head is the begin of a file.
type Head struct {
	Bytes    []byte // at most as many as were asked for
	More     bool   // the file is longer
	Dev, Ino uint64 // its identity
}

// Head reads at most max bytes of a regular file. Anything but a regular file
// is an error at once.
func (p Place) Head(rel string, max int) (h Head, err error) {
	f, err := p.Open(rel)
	if err != nil {
		return h, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return h, err
	}
	h.Dev, h.Ino = uint64(st.Dev), st.Ino
	b, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	if err != nil {
		return h, err
	}
	h.Bytes, h.More = b[:min(len(b), max)], len(b) > max
	return h, nil
}

// Sub opens a directory in the place. The caller closes it.
func (p Place) Sub(rel string) (Place, error) {
	d, err := p.Dir.Sub(rel)
	if err != nil {
		return Place{}, err
	}
	return Place{Dir: d, Path: path.Join(p.Path, rel), Project: p.Project}, nil
}

// Names lists the place in the order of names, at most max of them; of a larger
// directory some, and more is true.
func (p Place) Names(max int) (names []string, more bool, err error) {
	// A descriptor of its own, because the os package closes what it is given.
	fd, err := unix.FcntlInt(uintptr(p.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	f := os.NewFile(uintptr(fd), p.Path)
	defer f.Close()
	// It shares its position with the Dir.
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	names, err = f.Readdirnames(max + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(names) > max; more {
		names = names[:max]
	}
	slices.Sort(names)
	return names, more, nil
}

// warnings collects what a search could not use.
type warnings struct {
	list []Warning
	more int
}

// add notes an error. That something is not there is none.
func (w *warnings) add(inside string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
	case len(w.list) == libctx.MaxWarnings:
		w.more++
	default:
		w.list = append(w.list, Warning{inert.Line(inside), why(err)})
	}
}

func (w *warnings) done() []Warning {
	if w.more > 0 {
		w.list = append(w.list, Warning{"rules and skills", fmt.Sprintf("%d more warnings", w.more)})
	}
	return w.list
}

// why says what is wrong without the host's paths.
func why(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, unix.ELOOP):
		return "is a symbolic link, or leads through one"
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errdefs.Is(err, errdefs.Invalid):
		return "is not a regular file"
	}
	return inert.Line(err.Error())
}
