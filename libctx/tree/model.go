package tree

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
	"golang.org/x/sys/unix"
)

// ModelSpec is a model of the tree: what its control files say besides what
// people set there.
type ModelSpec struct {
	ID        libctx.Model // provider/model
	Driver    string
	Cap       []string
	Limit     window.Size
	MaxOutput uint32 // 0 if nobody knows
}

// files are the control files of the model, checked: name to content.
func (s *ModelSpec) files() (map[string][]byte, error) {
	files := map[string][]byte{
		"id":     control.Line(string(s.ID)),
		"driver": control.Line(s.Driver),
		"cap":    control.List(s.Cap),
		"limit":  control.Line(control.Limit(s.Limit).String()),
	}
	if s.MaxOutput != 0 {
		files["max_output"] = control.Line(strconv.FormatUint(uint64(s.MaxOutput), 10))
	}
	for name, text := range files {
		if err := control.CheckModel(name, text); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "model %s: %w", s.ID, err)
		}
	}
	return files, nil
}

// debugModels are in every tree. They answer without a provider.
var debugModels = []ModelSpec{
	{ID: "debug/echo", Driver: "debug", Cap: []string{control.CapChat, control.CapStream}, Limit: 131072},
	{ID: "debug/script", Driver: "debug", Cap: []string{control.CapChat, control.CapStream, control.CapTools, control.CapReasoning}, Limit: 131072},
	{ID: "debug/tools", Driver: "debug", Cap: []string{control.CapChat, control.CapStream, control.CapTools}, Limit: 131072},
}

// defaultModel is what main leads to in a new tree.
const defaultModel = "debug/echo"

// model makes a built-in model. What people may set, limit too, stays.
func (m *maker) model(s ModelSpec) {
	if m.err != nil {
		return
	}
	files, err := s.files()
	if err != nil {
		m.err = errdefs.New(errdefs.Internal, "%w", err)
		return
	}
	rel := path.Join("model", string(s.ID))
	_, err = m.root.Lstat(rel)
	missing, before := errdefs.Is(err, errdefs.NotFound), len(m.made)
	m.dir(rel+".d", dirPerm)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m.file(path.Join(rel+".d", name), files[name], filePerm, name == "limit")
	}
	m.file(rel, []byte(modelScript(s.ID)), execPerm, false)
	if missing && m.err == nil {
		m.made = append(m.made[:before], rel) // a new model is one thing
	}
}

// alias makes an alias of the tree unless the name is there.
func (m *maker) alias(name, target string) {
	if m.err != nil {
		return
	}
	rel := path.Join("model", name)
	if _, err := m.root.Lstat(rel); !errdefs.Is(err, errdefs.NotFound) {
		m.err = err
		return
	}
	dir, err := m.root.Sub("model")
	if err != nil {
		m.err = err
		return
	}
	defer dir.Close()
	if _, m.err = link(dir, name, target); m.err == nil {
		m.made = append(m.made, rel)
	}
}

// AddModels makes the entries and control files of models, or changes those of
// models that are there: what a spec says is replaced, other control files stay.
// A change that would leave an agent with a window its model does not have is
// errdefs.Invalid, and nothing is changed.
func AddModels(l paths.Layout, specs []ModelSpec) error {
	files := make([]map[string][]byte, len(specs))
	limits := map[libctx.Model]window.Size{}
	for i := range specs {
		var err error
		if files[i], err = specs[i].files(); err != nil {
			return err
		}
		limits[specs[i].ID] = specs[i].Limit
	}
	return changeModels(l, func(root *atomicfile.Dir) error {
		if err := keepsWindows(l, func(_ libctx.Agent, ref models.Ref) (window.Size, bool) {
			limit, ok := limits[ref.ID]
			return limit, ok
		}); err != nil {
			return err
		}
		for i := range specs {
			if err := addModel(root, specs[i].ID, files[i]); err != nil {
				return errdefs.New(errdefs.KindOf(err), "model %s: %w", specs[i].ID, err)
			}
		}
		return nil
	})
}

func addModel(root *atomicfile.Dir, id libctx.Model, files map[string][]byte) error {
	rel := path.Join("model", string(id))
	dir, err := root.MkdirAll(rel+".d", dirPerm)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, set := files["max_output"]; !set {
		if err := dir.Remove("max_output"); err != nil && !errdefs.Is(err, errdefs.NotFound) {
			return err
		}
	}
	// id last: without it there is no model yet.
	for _, name := range []string{"driver", "cap", "limit", "max_output", "id"} {
		if text, ok := files[name]; ok {
			if err := dir.Replace(name, text, filePerm); err != nil {
				return err
			}
		}
	}
	return root.Replace(rel, []byte(modelScript(id)), execPerm)
}

// RemoveModels removes models with their control files; those that are not there
// are passed over. If an agent's explicit window rests on one of them, the error
// is errdefs.Invalid and nothing is removed.
func RemoveModels(l paths.Layout, ids []libctx.Model) error {
	return changeModels(l, func(root *atomicfile.Dir) error {
		if err := keepsWindows(l, func(_ libctx.Agent, ref models.Ref) (window.Size, bool) {
			return 0, slices.Contains(ids, ref.ID)
		}); err != nil {
			return err
		}
		for _, id := range ids {
			if err := removeModel(root, id); err != nil && !errdefs.Is(err, errdefs.NotFound) {
				return errdefs.New(errdefs.KindOf(err), "model %s: %w", id, err)
			}
		}
		return nil
	})
}

func removeModel(root *atomicfile.Dir, id libctx.Model) error {
	provider, name, _ := strings.Cut(string(id), "/")
	dir, err := root.Sub(path.Join("model", provider))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.RemoveAll(name); err != nil {
		return err
	}
	// Out of sight at once: a model with half its controls is another one.
	gone := ".gone-" + name
	if err := dir.RemoveAll(gone); err != nil {
		return err
	}
	err = unix.Renameat(dir.FD(), name+".d", dir.FD(), gone)
	if err == nil {
		err = dir.RemoveAll(gone)
	}
	if err == unix.ENOENT {
		err = nil
	}
	if err != nil {
		return err
	}
	if err := dir.Sync(); err != nil {
		return err
	}
	_ = root.Remove(path.Join("model", provider)) // if it is empty now
	return nil
}
