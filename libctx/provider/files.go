package provider

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
)

const suffix = ".json"

// Load reads the file of one provider. No such file is errdefs.NotFound, one
// that can not be trusted errdefs.Denied, one that says something wrong
// errdefs.Invalid.
func Load(l paths.Layout, name string) (*Provider, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := openDir(l.Config, "providers.d", looseWrite, self())
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
	if err := trust(path, &st, looseWrite, self()); err != nil {
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
	dir, err := openDir(l.Config, "providers.d", looseWrite, self())
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
	dir, err := makeDir(l.Config, "providers.d", dirPerm(perm), looseWrite, self())
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
	dir, err := openDir(l.Config, "providers.d", looseWrite, self())
	if err == nil {
		defer dir.Close()
		err = dir.Remove(name + suffix)
	}
	if errdefs.Is(err, errdefs.NotFound) {
		return unknown(name)
	}
	return err
}

// dirPerm is the mode of a directory for files of a mode: who reads them may
// go there.
func dirPerm(file fs.FileMode) fs.FileMode { return file | file&0o444>>2 }
