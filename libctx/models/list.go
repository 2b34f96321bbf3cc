package models

import (
	"io/fs"
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Entry is one model of a listing. Err is why Model is nil.
type Entry struct {
	ID    libctx.Model
	Model *Model
	Err   error
}

// Alias is one alias of a listing. Own are the user's, which go before the
// tree's. Err is why Target is "".
type Alias struct {
	Name, Target libctx.Model
	Own          bool
	Err          error
}

// List finds the models of the tree and the aliases that the user uid can name,
// each in the order of names. What can not be believed or read is listed with
// the reason.
func List(l paths.Layout, uid uint32) (models []Entry, aliases []Alias, err error) {
	_, err = within(l, func(t *tree) (struct{}, error) {
		aliases, err = t.userAliases(l, uid)
		if err != nil {
			return struct{}{}, err
		}
		dir, err := t.dir("model")
		if err != nil {
			return struct{}{}, err
		}
		defer dir.Close()
		names, err := entries(dir)
		if err != nil {
			return struct{}{}, err
		}
		for _, name := range names.links {
			target, err := readAlias(dir, "model/", name, t.owner, "")
			aliases = append(aliases, Alias{Name: name, Target: target, Err: err})
		}
		for _, provider := range names.dirs {
			more, err := t.ofProvider(provider)
			if err != nil {
				return struct{}{}, err
			}
			models = append(models, more...)
		}
		return struct{}{}, nil
	})
	return models, aliases, err
}

// OfProvider finds the models of one provider, in the order of names. A provider
// that has none is no error.
func OfProvider(l paths.Layout, provider string) ([]Entry, error) {
	return within(l, func(t *tree) ([]Entry, error) {
		list, err := t.ofProvider(provider)
		if errdefs.Is(err, errdefs.NotFound) {
			return nil, nil
		}
		return list, err
	})
}

func (t *tree) ofProvider(provider string) ([]Entry, error) {
	dir, err := t.dir(path.Join("model", provider))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := entries(dir)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, name := range names.controls {
		e := Entry{ID: libctx.Model(provider + "/" + name)}
		if e.Model, e.Err = t.load(e.ID); e.Err != nil {
			e.Err = about(e.ID, e.Err)
		}
		list = append(list, e)
	}
	return list, nil
}

func (t *tree) userAliases(l paths.Layout, uid uint32) (list []Alias, err error) {
	err = as(l, uid, func() error {
		dir, err := t.dirOf(userModels(uid), uid)
		if err != nil {
			return err
		}
		defer dir.Close()
		names, err := entries(dir)
		for _, name := range names.links {
			target, err := readAlias(dir, userModels(uid)+"/", name, uid, fromHome)
			list = append(list, Alias{Name: name, Target: target, Own: true, Err: err})
		}
		return err
	})
	if errdefs.Is(err, errdefs.NotFound) {
		err = nil
	}
	return list, err
}

// found is the names of a directory that mean something here.
type found struct {
	links    []libctx.Model // aliases
	dirs     []string       // providers
	controls []string       // models: NAME of NAME.d
}

// entries sorts out a directory. One of more than libctx.MaxToolDir entries is
// errdefs.TooBig.
func entries(dir *atomicfile.Dir) (found, error) {
	var f found
	all, err := dir.ReadDir(".")
	if err != nil {
		return f, errdefs.New(errdefs.KindOf(err), "%s: %w", dir.Path(), bare(err))
	}
	if len(all) > libctx.MaxToolDir {
		return f, errdefs.New(errdefs.TooBig, "%s: has more than %d entries", dir.Path(), libctx.MaxToolDir)
	}
	for _, e := range all {
		name, isControl := strings.CutSuffix(e.Name(), ".d")
		m, err := libctx.ParseModel(name)
		switch {
		case err != nil:
		case isControl:
			f.controls = append(f.controls, name)
		case e.IsDir():
			f.dirs = append(f.dirs, name)
		case e.Type() == fs.ModeSymlink:
			f.links = append(f.links, m)
		}
	}
	return f, nil
}
