// Package rules finds the AGENTS.md files that apply to an agent and makes the
// one text of them that its prompt shows (docs/reference/prompt.md).
package rules

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/discover"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
)

// fileName is what files of rules are called.
const fileName = "AGENTS.md"

// File is one AGENTS.md.
type File struct {
	Path    string // as seen inside, one line
	Text    string // valid UTF-8, of at most libctx.MaxRuleFile bytes of the file
	Project bool   // from the workspace
}

// Rules are the files that apply: the machine's, the agent's, then those from
// the top of the workspace down to cwd. A file that is found in two places
// counts once, where it was found first.
type Rules []File

// Discover reads the rules. It never fails: what can not be read is a warning.
func Discover(p discover.Places) (Rules, []discover.Warning) {
	type inode struct{ dev, ino uint64 }
	var found Rules
	seen := map[inode]bool{}
	warnings := p.Search(func(places []discover.Place, warn func(string, error)) {
		for _, pl := range places {
			inside := path.Join(pl.Path, fileName)
			h, err := pl.Head(fileName, libctx.MaxRuleFile)
			if err != nil {
				warn(inside, err)
				continue
			}
			id := inode{h.Dev, h.Ino}
			text := strings.TrimSpace(wire.Clean(h.Bytes))
			if seen[id] || text == "" {
				continue
			}
			seen[id] = true
			if h.More {
				text += fmt.Sprintf("\n\n(Cut: the file is longer than %d bytes.)", libctx.MaxRuleFile)
				warn(inside, fmt.Errorf("is longer than %d bytes, the rest is not used", libctx.MaxRuleFile))
			}
			found = append(found, File{Path: inert.Line(inside), Text: text, Project: pl.Project})
		}
	})
	return found, warnings
}

// Notes of what is missing, and the least part of a file worth showing.
const (
	cutNote = "\n\n(Cut: the rules have no more room.)"
	outNote = "(%d more files of rules have no room here.)\n"
	outRoom = 60
	minPart = 200
)

// Text is the rules as a prompt and the snapshot AGENTS.md show them: each file
// below a heading with its path, at most max characters in all; "" if there are
// none. Where not all fit, the machine's and the agent's own come first, then
// those nearest to cwd; what is cut or left out says so.
func (r Rules) Text(max int) string {
	sections := make([]string, len(r))
	total := 0
	for i, f := range r {
		sections[i] = "### " + f.Path + "\n\n" + f.Text + "\n"
		total += length(sections[i])
	}
	total += len(r) - 1 // empty lines between
	if total <= max {
		return strings.Join(sections, "\n")
	}
	left, out := max-outRoom, 0
	for _, i := range r.precedence() {
		switch n := length(sections[i]) + 1; {
		case n <= left:
			left -= n
		case left >= minPart+len(r[i].Path):
			sections[i] = head(sections[i], left-2-len(cutNote)) + cutNote + "\n"
			left = 0
		default:
			sections[i] = ""
			out++
		}
	}
	var b strings.Builder
	for _, s := range sections {
		if s != "" {
			b.WriteString(s + "\n")
		}
	}
	if out > 0 && max >= outRoom {
		fmt.Fprintf(&b, outNote, out)
	}
	return b.String()
}

// precedence is the order in which the files get room. Those of the machine and
// of the agent can not be crowded out by a workspace.
func (r Rules) precedence() []int {
	var order []int
	for i := range r {
		if !r[i].Project {
			order = append(order, i)
		}
	}
	for i := len(r) - 1; i >= 0; i-- {
		if r[i].Project {
			order = append(order, i)
		}
	}
	return order
}

func length(s string) int { return utf8.RuneCountInString(s) }

// head is the first n characters.
func head(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
