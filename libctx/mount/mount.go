// Package mount is the mount table of an agent: which directories its sandbox
// shows where, one a line of four fields that single TABs separate,
//
//	SOURCE TAB TARGET TAB ro|rw TAB OPTIONS
//
// OPTIONS is a comma list of bind, rbind, nosuid, nodev, noexec, or "-" for
// none. Reading and looking up are pure; the sandbox recipe does the mounting.
package mount

import (
	"path"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
)

// Line is one line of the table.
type Line struct {
	Source   string // absolute and clean; at or below /ctx it means the tree, else the host
	Target   string // absolute and clean, as seen inside
	ReadOnly bool
	Options  []string // in file order; empty for "-"
}

// Table is the lines of one file, in file order. No two have the same target.
type Table []Line

var options = []string{"bind", "rbind", "nosuid", "nodev", "noexec"}

// Parse reads a table of at most libctx.MaxMounts lines. Errors are errdefs.Invalid and name the line and the
// field (linefile.Error). Besides the form it checks where a line may mount:
// /home/agent, /ctx and below (read-write only below /ctx/shared and
// /ctx/home), and what CheckTarget admits.
func Parse(text []byte) (Table, error) {
	lines, err := linefile.Split(text)
	if err != nil {
		return nil, err
	}
	if max := libctx.MaxMounts; len(lines) > max {
		return nil, linefile.Refuse(max+1, lines[max], "is one mount too many: a table has at most %d", max)
	}
	var t Table
	for i, text := range lines {
		l, err := parseLine(i+1, text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(t, func(other Line) bool { return other.Target == l.Target }) {
			return nil, linefile.Refuse(i+1, l.Target, "is the target of an earlier line")
		}
		t = append(t, l)
	}
	return t, nil
}

func parseLine(n int, text string) (Line, error) {
	f := strings.Split(text, "\t")
	if len(f) != 4 {
		return Line{}, linefile.Refuse(n, text, "has %d fields; a mount has four, with one TAB between them: SOURCE TARGET ro|rw OPTIONS", len(f))
	}
	l := Line{Source: f[0], Target: f[1]}
	for _, p := range f[:2] {
		if err := linefile.CheckAbsolute(p); err != nil {
			return Line{}, linefile.At(n, text, err)
		}
	}
	var ok bool
	if l.ReadOnly, ok = mode(f[2]); !ok {
		return Line{}, linefile.Refuse(n, f[2], "is not ro or rw")
	}
	if f[3] != "-" {
		l.Options = strings.Split(f[3], ",")
	}
	for i, o := range l.Options {
		switch {
		case !slices.Contains(options, o):
			return Line{}, linefile.Refuse(n, o, "is not an option: bind, rbind, nosuid, nodev, noexec, or - for none")
		case slices.Contains(l.Options[:i], o):
			return Line{}, linefile.Refuse(n, o, "is given twice")
		case o == "bind" && slices.Contains(l.Options, "rbind"):
			return Line{}, linefile.Refuse(n, f[3], "has both bind and rbind")
		}
	}
	if why := l.misplaced(); why != "" {
		return Line{}, linefile.Refuse(n, l.Target, "%s", why)
	}
	return l, nil
}

// misplaced says why a table may not mount there, or "".
func (l Line) misplaced() string {
	switch {
	case l.Target == paths.InHome:
		return ""
	case paths.Below(l.Target, paths.InRoot):
		if !l.ReadOnly && !strings.HasPrefix(l.Target, "/ctx/shared/") && !strings.HasPrefix(l.Target, "/ctx/home/") {
			return "can not be writable: of the tree only shared spaces and homes can"
		}
		return ""
	}
	return reserved(l.Target)
}

func mode(s string) (readOnly, ok bool) { return s == "ro", s == "ro" || s == "rw" }

// Text is the canonical text of the table; Parse(t.Text()) is t.
func (t Table) Text() []byte {
	var b []byte
	for _, l := range t {
		b = append(append(b, l.String()...), '\n')
	}
	return b
}

// String is the line without LF.
func (l Line) String() string {
	mode, opts := "rw", "-"
	if l.ReadOnly {
		mode = "ro"
	}
	if len(l.Options) > 0 {
		opts = strings.Join(l.Options, ",")
	}
	return l.Source + "\t" + l.Target + "\t" + mode + "\t" + opts
}

// Default is the table of a new agent: the tree read-only at /ctx, and the
// agent's home, kept below the home of its owner uid, read-write at
// /home/agent.
func Default(uid uint32, a libctx.Agent) Table {
	home := paths.Layout{Root: paths.InRoot}.AgentHome(uid, a)
	return Table{
		{Source: paths.InRoot, Target: paths.InRoot, ReadOnly: true, Options: []string{"nosuid", "nodev"}},
		{Source: home, Target: paths.InHome, Options: []string{"nosuid", "nodev"}},
	}
}

// Covering is the most specific line whose target is the inside path or a
// directory above it. The path is cleaned first; one that is not absolute is
// covered by nothing.
func (t Table) Covering(inside string) (Line, bool) {
	var best Line
	var found bool
	if !strings.HasPrefix(inside, "/") {
		return best, false
	}
	inside = path.Clean(inside)
	for _, l := range t {
		if paths.Below(inside, l.Target) && (!found || len(l.Target) > len(best.Target)) {
			best, found = l, true
		}
	}
	return best, found
}

// NoExec reports whether nothing below the target may be executed.
func (l Line) NoExec() bool { return slices.Contains(l.Options, "noexec") }
