package manual

import (
	"path"
	"regexp"
	"strings"
)

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)`)

// link turns links between pages of the reference into names of manual pages, and
// into paths where the pages are installed if they are no manual pages.
func (b *Book) link(text string) string {
	return link.ReplaceAllStringFunc(text, func(s string) string {
		m := link.FindStringSubmatch(s)
		if strings.Contains(m[2], "://") {
			return s
		}
		name := path.Join("docs/reference", m[2])
		target := "`/usr/share/doc/cortexfs-ctx/" + strings.TrimPrefix(name, "docs/") + "`"
		if p := b.sources[name]; p != nil {
			target = "**" + p.Name + "**(" + p.Section + ")"
		}
		if m[1] == m[2] || strings.Trim(m[1], "`") == m[2] {
			return target
		}
		return m[1] + " (" + target + ")"
	})
}

// capital writes the heads of sections as manual pages do.
func capital(text string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "## ") {
			line = strings.ToUpper(line)
		}
		out.WriteString(line)
	}
	return out.String()
}

// untable makes tables lists: each row its first cell, and below it the others. A
// manual page is too narrow for tables whose cells are sentences.
func untable(text string) string {
	var out strings.Builder
	var head []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			if fenced {
				line = "\n<!-- -->\n\n" + line // a list ends here
			}
		}
		if fenced || !strings.HasPrefix(line, "|") {
			head = nil
			out.WriteString(line)
			continue
		}
		cells := row(line)
		switch {
		case head == nil:
			head = cells
		case strings.Trim(cells[0], "-: ") == "" && strings.Contains(cells[0], "-"):
		default:
			out.WriteString(entry(head, cells))
		}
	}
	return out.String()
}

// row are the cells of a line of a table.
func row(line string) []string {
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00")
	var cells []string
	for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
		cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|"))
	}
	return cells
}

func entry(head, cells []string) string {
	var said []string
	for i, cell := range cells[1:] {
		switch {
		case cell == "":
		case i == 0 || i+1 >= len(head) || head[i+1] == "":
			said = append(said, cell)
		default:
			said = append(said, head[i+1]+": "+cell)
		}
	}
	term := cells[0]
	if term == "" {
		term = "(none)"
	}
	if len(said) == 0 {
		said = []string{"-"}
	}
	return "\n" + term + "\n: " + strings.Join(said, "; ") + "\n"
}
