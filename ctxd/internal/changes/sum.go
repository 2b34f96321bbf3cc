package changes

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx/wire"
	"cortexfs.org/libctx/workspace"
)

// manyBelow is how many paths below a new directory are listed one by one.
const manyBelow = 100

// sum makes the result of what was found; nil if that is nothing.
func (l *look) sum() *wire.Changes {
	all := l.changes()
	if len(all) == 0 && len(l.lack) == 0 {
		return nil
	}
	c := &wire.Changes{Head: wire.Head{Type: "changes"}, Paths: []wire.Change{}, Incomplete: l.lack}
	text := 0
	for _, change := range all {
		if change.Listed {
			c.Listed++
		}
		if change.Executable {
			c.Executable++
		}
		if !change.Fits(len(c.Paths), text) {
			c.More += 1 + change.Below
			continue
		}
		text += len(change.Path)
		c.Paths = append(c.Paths, change)
	}
	return c
}

// changes are all paths that are told, the listed and executable ones first.
func (l *look) changes() []wire.Change {
	told := map[string]*wire.Change{}
	news := l.news()
	for at, f := range l.found {
		if top := l.listed(at); top != "" {
			l.tell(told, top).Listed = true
			if top != at && !f.exec {
				continue
			}
		} else if top := news[at]; top != "" && !f.exec {
			l.tell(told, top).Below++
			continue
		} else if f.kind == "dir" && !f.created && l.explained(at) {
			continue
		}
		l.tell(told, at)
	}
	all := make([]wire.Change, 0, len(told))
	for _, c := range told {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b wire.Change) int {
		if x, y := a.Listed || a.Executable, b.Listed || b.Executable; x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	for i := range all {
		all[i].Path = show(all[i].Path)
	}
	return all
}

// tell is what is told of a path.
func (l *look) tell(told map[string]*wire.Change, at string) *wire.Change {
	c := told[at]
	if c == nil {
		c = &wire.Change{Path: at, Kind: "dir", What: wire.Changed}
		if f := l.found[at]; f != nil {
			c.Kind, c.Executable = f.kind, f.exec
			if f.created {
				c.What = wire.Created
			}
		}
		told[at] = c
	}
	return c
}

// listed is the topmost part of a path that other programs act on by themselves, or
// that the agent's own control protects; "" if there is none.
func (l *look) listed(at string) string {
	if first, _, _ := strings.Cut(at, "/"); l.bare["."] && slices.Contains(vital, first) {
		return "."
	}
	for i := 0; i <= len(at); i++ {
		if i < len(at) && at[i] != '/' {
			continue
		}
		if workspace.Sensitive(path.Base(at[:i])) || l.bare[at[:i]] || l.protected(at[:i]) {
			return at[:i]
		}
	}
	return ""
}

// protected reports whether the agent's own control names a path.
func (l *look) protected(at string) bool {
	return slices.ContainsFunc(l.ground.Protect, func(line string) bool { return path.Clean(line) == at })
}

// vital is what makes a repository do things, beside what makes it one.
var vital = append([]string{"config", "hooks", "info"}, repository...)

// news maps what was found below new directories with very much in them to the
// topmost of those.
func (l *look) news() map[string]string {
	top, below := map[string]string{}, map[string]int{}
	for at := range l.found {
		for dir := path.Dir(at); dir != "."; dir = path.Dir(dir) {
			if f := l.found[dir]; f != nil && f.kind == "dir" && f.created {
				top[at] = dir
			}
		}
		below[top[at]]++
	}
	for at, dir := range top {
		if below[dir] <= manyBelow {
			delete(top, at)
		}
	}
	return top
}

// explained reports whether something that was found in a directory explains that
// the directory itself changed.
func (l *look) explained(dir string) bool {
	if l.parents == nil {
		l.parents = map[string]bool{}
		for at, f := range l.found {
			if f.kind != "dir" || f.created { // else it was there before, and is
				l.parents[path.Dir(at)] = true
			}
		}
	}
	return l.parents[dir]
}

// show makes a path printable in one line and unambiguous: as it is, or, if it
// holds anything that is not plain to see, as a Go string literal.
func show(p string) string {
	if strings.ContainsAny(p, `"\`) || strings.HasPrefix(p, " ") || strings.HasSuffix(p, " ") || !utf8.ValidString(p) {
		return strconv.Quote(p)
	}
	for _, r := range p {
		if !strconv.IsPrint(r) {
			return strconv.Quote(p)
		}
	}
	return p
}
