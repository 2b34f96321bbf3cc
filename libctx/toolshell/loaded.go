package toolshell

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// State is how loads shows an entry.
func (e Entry) State() string {
	if e.Pinned {
		return "pinned"
	}
	return "metadata"
}

func (r *run) loads(pinned bool) error {
	if r.Store == nil {
		return nil
	}
	set, err := r.Store.Load()
	if err != nil {
		return err
	}
	for _, e := range set.entries {
		if e.Pinned || !pinned {
			r.line(string(e.Name), e.Path, e.State(), brief(e.Description))
		}
	}
	return nil
}

// change carries out load, pin, unload and unpin: the set is read once, changed
// for every operand that can be served, and saved once.
func (r *run) change() error {
	if r.Store == nil {
		return errdefs.New(errdefs.Unavailable, "%s: there is no session whose tools could be loaded", r.Name).
			WithHint("ctx agent tsh AGENT -- %s TOOL", r.Name)
	}
	max := 0
	if r.Name != "unload" {
		config, err := r.Config()
		if err != nil {
			return err
		}
		max = config.MaxLoadedTools
	}
	set, err := r.Store.Load()
	if err != nil {
		return err
	}
	changed := false
	r.each(func(word string) error {
		after, err := r.one(set, word, max)
		if err == nil {
			set, changed = after, true
		}
		return err
	})
	if !changed {
		return nil
	}
	if err := r.Store.Save(set); err != nil {
		r.text.Reset() // nothing of it has come true
		return err
	}
	return nil
}

// one changes the set for one operand and says what became of it.
func (r *run) one(set Set, word string, max int) (after Set, err error) {
	name, err := libctx.ParseTool(word)
	if err != nil {
		return set, err
	}
	var e Entry
	var evicted []Entry
	switch r.Name {
	case "unload":
		if after, e, err = set.Unload(name); err == nil {
			r.line("unloaded "+string(name), e.Path)
		}
	case "unpin":
		if after, e, evicted, err = set.Unpin(name, max); err == nil {
			r.line("unpinned "+string(name), e.Path)
		}
	default:
		item, ferr := r.Catalog.Find(name)
		if ferr != nil {
			return set, ferr
		}
		if e = entryOf(item); r.Name == "pin" {
			if after, evicted, err = set.Pin(e, max); err == nil {
				r.line("pinned metadata "+string(name), e.Path)
			}
		} else if after, evicted, err = set.Load(e, max); err == nil {
			r.line("loaded "+string(name), e.Path, "metadata")
		}
	}
	if err != nil {
		return set, err
	}
	for _, gone := range evicted {
		r.line("evicted "+string(gone.Name), gone.Path)
	}
	return after, nil
}
