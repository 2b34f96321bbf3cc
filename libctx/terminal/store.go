package terminal

import (
	"errors"
	"io/fs"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

// Create makes the resource directory, or takes over the one of an earlier
// start: its event files and members of meta.json that this version does not
// know stay, everything else is that of m, whose ID, Agent, Session and Owner
// are those of p and whose State is Created. The caller closes the directory.
func (p Place) Create(m Meta) (*atomicfile.Dir, error) {
	m.ID, m.Agent, m.Session, m.State = p.ID(), p.Agent, p.Session, Created
	m.Owner = uidText(p.Owner.UID)
	d, err := p.dir(func(root *atomicfile.Dir, rel string) (*atomicfile.Dir, error) { return root.MkdirAll(rel, dirPerm) })
	if err != nil {
		return nil, err
	}
	err = p.Owner.Do(func() error {
		for file, text := range map[string]string{"owner": m.Owner, "cwd": m.Cwd} {
			if err := d.Replace(file, []byte(text+"\n"), filePerm); err != nil {
				return err
			}
		}
		return change(d, func(old Meta) (Meta, error) {
			m.Rest = old.Rest
			return m, nil
		})
	})
	if err != nil {
		d.Close()
		return nil, p.at(err)
	}
	return d, nil
}

// Load reads meta.json; errdefs.NotFound if the session never had a terminal,
// errdefs.Invalid if the file is damaged or that of another terminal.
func (p Place) Load() (Meta, error) {
	var m Meta
	err := p.within(func(d *atomicfile.Dir) (err error) {
		if m, err = load(d); err == nil && (m.Agent != p.Agent || m.Session != p.Session) {
			err = errdefs.New(errdefs.Invalid, "%s is that of %s/%s", MetaFile, m.Agent, m.Session)
		}
		return err
	})
	return m, err
}

// SetState changes the state, in meta.json and in the files state and status.
// m changes with it; change may be nil.
func (p Place) SetState(s State, with func(*Meta)) error {
	return p.within(func(d *atomicfile.Dir) error { return SetState(d, s, with) })
}

// SetState is Place.SetState in an open resource directory.
func SetState(d *atomicfile.Dir, s State, with func(*Meta)) error {
	return change(d, func(m Meta) (Meta, error) {
		if m.Agent == "" {
			return m, errdefs.New(errdefs.NotFound, "there is no %s", MetaFile)
		}
		m.State = s
		if with != nil {
			with(&m)
		}
		return m, nil
	})
}

// SetReceipt puts the receipt of the terminal's launch into meta.json.
func (p Place) SetReceipt(r Receipt) error {
	text, err := r.Text()
	if err != nil {
		return p.at(err)
	}
	return p.within(func(d *atomicfile.Dir) error {
		return change(d, func(m Meta) (Meta, error) {
			if m.Agent == "" {
				return m, errdefs.New(errdefs.NotFound, "there is no %s", MetaFile)
			}
			m.Receipt = text
			return m, nil
		})
	})
}

// Remove removes the resource with all its history; what is not there is no
// error. It is for a start that failed before the terminal ever was.
func (p Place) Remove() error {
	if err := p.check(); err != nil {
		return err
	}
	return p.at(p.Owner.Do(func() error {
		root, err := atomicfile.OpenDir(p.Layout.Root)
		if err != nil {
			return err
		}
		defer root.Close()
		return root.RemoveAll(p.rel())
	}))
}

// load reads the meta.json of an open resource directory.
func load(d *atomicfile.Dir) (Meta, error) {
	text, err := d.ReadFile(MetaFile, libctx.MaxControlFile)
	if err != nil {
		return Meta{}, err
	}
	m, err := ParseMeta(text)
	if err != nil {
		return Meta{}, errdefs.New(errdefs.Invalid, "%s: %w", MetaFile, err)
	}
	return m, nil
}

// change writes what to makes of the present meta.json, the zero Meta if there
// is none or one that can not be read, and then the state files.
func change(d *atomicfile.Dir, to func(Meta) (Meta, error)) error {
	var now Meta
	err := swap(d, MetaFile, filePerm, func(text []byte) ([]byte, error) {
		old, err := ParseMeta(text)
		if err != nil {
			old = Meta{}
		}
		if now, err = to(old); err != nil {
			return nil, err
		}
		return now.Text()
	})
	if err != nil {
		return err
	}
	for _, file := range []string{"state", "status"} {
		if text, err := d.ReadFile(file, libctx.MaxControlFile); err == nil && strings.TrimSuffix(string(text), "\n") == string(now.State) {
			continue
		}
		if err := d.Replace(file, []byte(string(now.State)+"\n"), filePerm); err != nil {
			return err
		}
	}
	return nil
}

// Project puts the receipt of a launch under the same key into the meta.json of
// an agent's control directory, which keeps its other members and its mode; a
// file that is missing is made with mode 0644. A file that is no JSON object is
// errdefs.Invalid and stays, one that would pass libctx.MaxControlFile is
// errdefs.TooBig.
func Project(control *atomicfile.Dir, r Receipt) error {
	text, err := r.Text()
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if st, err := control.Lstat(MetaFile); err == nil {
		perm = fs.FileMode(st.Mode & 0o777)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return swap(control, MetaFile, perm, func(old []byte) ([]byte, error) { return withReceipt(old, text) })
}

// Projected is the receipt in the meta.json of an agent's control directory;
// errdefs.NotFound if there is none.
func Projected(control *atomicfile.Dir) (Receipt, error) {
	text, err := control.ReadFile(MetaFile, libctx.MaxControlFile)
	if err != nil {
		return Receipt{}, err
	}
	var m struct {
		Receipt jsontext.Value `json:"runtime_receipt"`
	}
	if err := object(text, &m); err != nil {
		return Receipt{}, err
	}
	if m.Receipt == nil {
		return Receipt{}, errdefs.New(errdefs.NotFound, "%s holds no receipt", MetaFile)
	}
	return ParseReceipt(m.Receipt)
}
