package toolshell

import (
	"cmp"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Entry is what a session keeps of one loaded tool. It grants nothing: a call of
// the tool is decided about as if it had never been loaded.
type Entry struct {
	Name        libctx.Tool    `json:"name"`
	Path        string         `json:"path"` // as the shell shows it
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"schema,omitzero"` // an object, or absent
	Pinned      bool           `json:"pinned"`
	LastUsed    uint64         `json:"last_used"` // higher is later; no time
}

// Set is the loaded tools of one session, a value: its methods return what has
// become of it and leave it as it was. The zero value is empty.
type Set struct {
	entries []Entry // by name
}

// Entries lists the loaded tools by name.
func (s Set) Entries() []Entry { return slices.Clone(s.entries) }

// Find is the entry of that name.
func (s Set) Find(name libctx.Tool) (Entry, bool) {
	i, ok := s.index(name)
	if !ok {
		return Entry{}, false
	}
	return s.entries[i], true
}

func (s Set) index(name libctx.Tool) (int, bool) {
	return slices.BinarySearchFunc(s.entries, name, func(e Entry, name libctx.Tool) int { return cmp.Compare(e.Name, name) })
}

// with is the set with an entry in the place of the one of its name, if any.
func (s Set) with(e Entry) Set {
	i, ok := s.index(e.Name)
	if ok {
		all := slices.Clone(s.entries)
		all[i] = e
		return Set{all}
	}
	return Set{slices.Insert(slices.Clone(s.entries), i, e)}
}

func (s Set) without(name libctx.Tool) Set {
	return Set{slices.DeleteFunc(slices.Clone(s.entries), func(e Entry) bool { return e.Name == name })}
}

// now is later than every use so far.
func (s Set) now() uint64 {
	last := uint64(0)
	for _, e := range s.entries {
		last = max(last, e.LastUsed)
	}
	return last + 1
}

// Load adds the tool, or renews what is kept of it; a pinned one stays pinned.
// To make room at most max unpinned tools are kept: those that had to go come
// back as evicted, the least recently used first. A set that does not fit into
// libctx.MaxLoadedSet bytes although everything else unpinned is gone is
// errdefs.NoSpace, and nothing is changed then.
func (s Set) Load(e Entry, max int) (after Set, evicted []Entry, err error) {
	old, _ := s.Find(e.Name)
	e.Pinned = old.Pinned
	return s.put(e, max)
}

// Pin is Load, and protects the tool from being evicted.
func (s Set) Pin(e Entry, max int) (after Set, evicted []Entry, err error) {
	e.Pinned = true
	return s.put(e, max)
}

func (s Set) put(e Entry, max int) (Set, []Entry, error) {
	e.LastUsed = s.now()
	after, evicted := s.with(e).evict(max, e.Name)
	if n := after.size(); n > libctx.MaxLoadedSet {
		return s, nil, errdefs.New(errdefs.NoSpace, "%s: pinned tools and it take %d bytes, the limit is %d", e.Name, n, libctx.MaxLoadedSet).
			WithHint("tsh unpin TOOL lets one go")
	}
	return after, evicted, nil
}

// Unload removes the tool. One that is not there is errdefs.NotFound, a pinned
// one errdefs.Unavailable.
func (s Set) Unload(name libctx.Tool) (after Set, gone Entry, err error) {
	e, ok := s.Find(name)
	switch {
	case !ok:
		return s, Entry{}, errdefs.New(errdefs.NotFound, "%s is not loaded", name)
	case e.Pinned:
		return s, Entry{}, errdefs.New(errdefs.Unavailable, "%s is pinned", name).WithHint("tsh unpin %s", name)
	}
	return s.without(name), e, nil
}

// Unpin takes the protection from the tool, which stays loaded unless there are
// now too many: then it may be the one that is evicted. One that is not loaded
// or not pinned is errdefs.NotFound.
func (s Set) Unpin(name libctx.Tool, max int) (after Set, was Entry, evicted []Entry, err error) {
	e, ok := s.Find(name)
	switch {
	case !ok:
		return s, Entry{}, nil, errdefs.New(errdefs.NotFound, "%s is not loaded", name)
	case !e.Pinned:
		return s, Entry{}, nil, errdefs.New(errdefs.NotFound, "%s is not pinned", name)
	}
	e.Pinned = false
	after, evicted = s.with(e).evict(max, "")
	return after, e, evicted, nil
}

// Use notes that the tool was called. It reports whether that changed anything:
// one that is not loaded, or was the last one used, leaves the set as it is.
func (s Set) Use(name libctx.Tool) (after Set, changed bool) {
	e, ok := s.Find(name)
	if now := s.now(); ok && e.LastUsed+1 != now {
		e.LastUsed = now
		return s.with(e), true
	}
	return s, false
}

// evict drops unpinned entries, the least recently used first and of equals the
// first by name, until max are left and the file's limit is kept. The entry
// named keep stays.
func (s Set) evict(max int, keep libctx.Tool) (Set, []Entry) {
	var victims []Entry
	unpinned := 0
	for _, e := range s.entries {
		if e.Pinned {
			continue
		}
		if unpinned++; e.Name != keep {
			victims = append(victims, e)
		}
	}
	slices.SortFunc(victims, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.LastUsed, b.LastUsed), cmp.Compare(a.Name, b.Name))
	})
	var gone []Entry
	for len(victims) > 0 && (unpinned > max || s.size() > libctx.MaxLoadedSet) {
		gone = append(gone, victims[0])
		s, victims, unpinned = s.without(victims[0].Name), victims[1:], unpinned-1
	}
	return s, gone
}

// size is the length of the file, or beyond every limit if there is none.
func (s Set) size() int {
	text, err := s.Encode()
	if err != nil {
		return libctx.MaxLoadedSet + 1
	}
	return len(text)
}

// SetFile is the name of a set's file, in the directory context of its session.
const SetFile = "tsh.json"

// setVersion is the format of the file.
const setVersion = 1

// file is tsh.json.
type file struct {
	Version int     `json:"version"`
	Tools   []Entry `json:"tools"`
}

// Encode is the set as its file, one line. Text that is no UTF-8 is
// errdefs.Invalid.
func (s Set) Encode() ([]byte, error) {
	entries := s.entries
	if entries == nil {
		entries = []Entry{}
	}
	text, err := wire.Marshal(file{setVersion, entries})
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "loaded tools: %w", err)
	}
	return text, nil
}

// maxLastUsed keeps a file that somebody wrote from making the counter turn
// over.
const maxLastUsed = 1 << 53

// Decode reads the file of a set. Members that are not known are passed over.
// Another version, a tool twice, or a schema that is no object is
// errdefs.Invalid.
func Decode(text []byte) (Set, error) {
	refuse := func(format string, args ...any) (Set, error) {
		return Set{}, errdefs.New(errdefs.Invalid, "loaded tools: "+format, args...)
	}
	if len(text) > libctx.MaxLoadedSet {
		return refuse("%d bytes, the limit is %d", len(text), libctx.MaxLoadedSet)
	}
	var f file
	if err := wire.Object(text, &f); err != nil {
		return refuse("%w", err)
	}
	if f.Version != setVersion {
		return refuse("version %d is not known", f.Version)
	}
	var s Set
	for _, e := range f.Tools {
		_, twice := s.Find(e.Name)
		switch _, err := libctx.ParseTool(string(e.Name)); {
		case err != nil:
			return refuse("%w", err)
		case twice:
			return refuse("%s is there twice", e.Name)
		case e.Schema != nil && e.Schema.Kind() != '{':
			return refuse("the schema of %s is no object", e.Name)
		case e.LastUsed > maxLastUsed:
			return refuse("last_used of %s is too high", e.Name)
		}
		s = s.with(e)
	}
	if len(s.entries) > 0 && s.size() > libctx.MaxLoadedSet {
		return refuse("their file would have %d bytes, the limit is %d", s.size(), libctx.MaxLoadedSet)
	}
	return s, nil
}
