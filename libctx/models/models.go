package models

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
)

// Model is a model as its control files describe it at one moment.
type Model struct {
	ID        libctx.Model      // provider/model
	Driver    string            // who speaks to it: its provider's format, or "debug"
	Cap       []string          // what it can do
	Limit     window.Size       // tokens of input and output together
	MaxOutput int64             // tokens of one answer, 0 if not set
	Effort    string            // auto, low, medium, high or xhigh
	Default   map[string]string // options of every request to it
	Fallback  []libctx.Model    // what is tried in its place, in order
}

// Load reads the model id, provider/model. Errors: errdefs.NotFound if the tree
// has no such model; errdefs.Denied naming the file or directory that is a link,
// belongs to a stranger or can be written by others; errdefs.Invalid naming the
// file and line that does not parse, or an id that is not the model's place.
func Load(l paths.Layout, id libctx.Model) (*Model, error) {
	m, err := within(l, func(t *tree) (*Model, error) { return t.load(id) })
	if err != nil {
		return nil, about(id, err)
	}
	return m, nil
}

// about says of which model an error is, keeping kind and hint.
func about(m libctx.Model, err error) error {
	e := errdefs.New(errdefs.KindOf(err), "model %s: %w", m, err)
	if hint := errdefs.HintOf(err); hint != "" {
		e.Hint = hint
	}
	return e
}

func (t *tree) load(id libctx.Model) (*Model, error) {
	if _, err := libctx.ParseModel(string(id)); err != nil {
		return nil, err
	}
	provider, _, full := strings.Cut(string(id), "/")
	if !full {
		return nil, errdefs.New(errdefs.Invalid, "is an alias, not PROVIDER/MODEL")
	}
	name := "model/" + string(id) + ".d"
	if err := t.check(".", "model", path.Join("model", provider)); err != nil {
		return nil, err
	}
	dir, err := t.dir(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	m := &Model{Effort: control.EffortAuto}
	text := map[string][]byte{}
	for _, file := range control.ModelFiles() {
		if file == "log" || file == "status" { // say nothing about the model
			continue
		}
		b, st, err := dir.ReadStat(file, libctx.MaxControlFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, t.blame(dir, file, name+"/"+file, err)
		}
		if err := trusted(name+"/"+file, &st, t.owner); err != nil {
			return nil, err
		}
		text[file] = b
	}
	if err := m.parse(name, text); err != nil {
		return nil, err
	}
	if m.ID != id {
		return nil, errdefs.New(errdefs.Invalid, "%s/id: says %q, which is not its place", name, m.ID)
	}
	return m, nil
}

// parse fills in what the files say.
func (m *Model) parse(dir string, text map[string][]byte) error {
	var limit control.Limit
	var maxOutput uint32
	var options []string
	for _, err := range []error{
		set(text, dir, "id", &m.ID, control.ParseModelID),
		set(text, dir, "driver", &m.Driver, control.ParseDriver),
		set(text, dir, "cap", &m.Cap, control.ParseModelCap),
		set(text, dir, "limit", &limit, control.ParseLimit),
		set(text, dir, "max_output", &maxOutput, control.ParseMaxOutput),
		set(text, dir, "effort", &m.Effort, control.ParseEffort),
		set(text, dir, "default", &options, control.ParseDefault),
		set(text, dir, "fallback", &m.Fallback, control.ParseFallback),
	} {
		if err != nil {
			return err
		}
	}
	m.Limit = window.Size(limit)
	m.MaxOutput = int64(maxOutput)
	for _, kv := range options {
		if m.Default == nil {
			m.Default = make(map[string]string, len(options))
		}
		key, value, _ := strings.Cut(kv, "=")
		m.Default[key] = value
	}
	return nil
}

// set parses one file into its place if it is there; id must be.
func set[T any](text map[string][]byte, dir, file string, to *T, parse func([]byte) (T, error)) error {
	b, ok := text[file]
	if !ok {
		if file == "id" {
			return errdefs.New(errdefs.Invalid, "%s/id: is not there", dir)
		}
		return nil
	}
	v, err := parse(b)
	if err != nil {
		return errdefs.New(errdefs.Invalid, "%s/%w", dir, linefile.In(file, err))
	}
	*to = v
	return nil
}
