package provider

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

const suffix = ".json"

// Load reads the file of one provider. No such file is errdefs.NotFound, one
// that can not be trusted errdefs.Denied, one that says something wrong
// errdefs.Invalid.
func Load(l paths.Layout, name string) (*Provider, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := openDir(l.Config, "providers.d", looseWrite)
	if err == nil {
		defer dir.Close()
		return load(dir, name)
	}
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, unknown(name)
	}
	return nil, err
}

func load(dir *atomicfile.Dir, name string) (*Provider, error) {
	text, st, err := dir.ReadStat(name+suffix, libctx.MaxControlFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown(name)
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Path(), name+suffix)
	if err := trust(path, &st, looseWrite); err != nil {
		return nil, err
	}
	p, err := Parse(text)
	if err == nil && p.Name != name {
		err = errdefs.New(errdefs.Invalid, "is the file of provider %s", p.Name)
	}
	if err != nil {
		return nil, linefile.In(path, err)
	}
	return p, nil
}

func unknown(name string) error {
	return errdefs.New(errdefs.NotFound, "there is no provider %s", name).WithHint("ctx provider ls")
}

// List returns the names of the providers that have files, sorted. Files of
// other names are left out; no directory is no provider.
func List(l paths.Layout) ([]string, error) {
	dir, err := openDir(l.Config, "providers.d", looseWrite)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	if len(names) > libctx.MaxProviders {
		return nil, errdefs.New(errdefs.Invalid, "%s: %d providers are more than %d", dir.Path(), len(names), libctx.MaxProviders)
	}
	return names, nil
}

// Save writes the file of a provider, in place of one that is there, and makes
// the directories if they are missing.
func Save(l paths.Layout, p *Provider) error {
	text, err := p.Marshal()
	if err != nil {
		return err
	}
	// In system mode ctxmodel is somebody else, who has to read it.
	perm := fs.FileMode(0o600)
	if l.System {
		perm = 0o644
	}
	dir, err := makeDir(l.Config, "providers.d", perm|perm>>2&0o111|0o100, looseWrite)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Replace(p.Name+suffix, text, perm)
}

// Remove removes the file of a provider. Its keys stay.
func Remove(l paths.Layout, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	dir, err := openDir(l.Config, "providers.d", looseWrite)
	if err == nil {
		defer dir.Close()
		err = dir.Remove(name + suffix)
	}
	if errdefs.Is(err, errdefs.NotFound) {
		return unknown(name)
	}
	return err
}

// Modes that a file or directory may not have.
const (
	looseWrite = 0o022 // others can change it
	looseRead  = 0o077 // others can do anything with it
)

// trust refuses a file or directory that another user made, or can look into
// or change. The kernel has followed no link to it.
func trust(path string, st *unix.Stat_t, loose uint32) error {
	me := uint32(os.Geteuid())
	switch {
	case st.Uid != me && st.Uid != 0:
		return errdefs.New(errdefs.Denied, "%s: belongs to uid %d", path, st.Uid)
	case st.Mode&loose != 0:
		return errdefs.New(errdefs.Denied, "%s: has mode %#o, which lets others in", path, st.Mode&0o777).
			WithHint("chmod go-%s %s", map[bool]string{true: "w", false: "rwx"}[loose == looseWrite], path)
	}
	return nil
}

// openDir opens a directory below a trusted path, each level of which below it
// is one of ours.
func openDir(base, rel string, loose uint32) (*atomicfile.Dir, error) {
	top, err := atomicfile.OpenDir(base)
	if err != nil {
		return nil, err
	}
	return walk(top, rel, loose, func(d *atomicfile.Dir, name string) (*atomicfile.Dir, error) { return d.Sub(name) })
}

// makeDir is openDir and makes what is missing.
func makeDir(base, rel string, perm fs.FileMode, loose uint32) (*atomicfile.Dir, error) {
	if err := os.MkdirAll(base, perm); err != nil {
		return nil, err
	}
	top, err := atomicfile.OpenDir(base)
	if err != nil {
		return nil, err
	}
	return walk(top, rel, loose, func(d *atomicfile.Dir, name string) (*atomicfile.Dir, error) { return d.MkdirAll(name, perm) })
}

// walk goes down from top, which it closes, and checks each directory.
func walk(top *atomicfile.Dir, rel string, loose uint32, step func(*atomicfile.Dir, string) (*atomicfile.Dir, error)) (*atomicfile.Dir, error) {
	dir := top
	for name := range strings.SplitSeq(rel, "/") {
		if err := trustDir(dir, looseWrite); err != nil {
			dir.Close()
			return nil, err
		}
		next, err := step(dir, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	if err := trustDir(dir, loose); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func trustDir(d *atomicfile.Dir, loose uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(d.FD(), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: d.Path(), Err: err}
	}
	return trust(d.Path(), &st, loose)
}
