package toolshell

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// entryOf is what is kept of a tool: descriptions are cut, a schema that is too
// long or none is left out.
func entryOf(i Item) Entry {
	e := Entry{Name: i.Name, Path: wire.Clean([]byte(i.Path)), Description: cut(wire.Clean([]byte(i.Description)), libctx.MaxLoadedAbout)}
	schema := jsontext.Value(i.Schema)
	if len(schema) <= libctx.MaxControlFile && wire.Object(schema, &struct{}{}) == nil && schema.Compact() == nil &&
		len(schema) <= libctx.MaxLoadedSchema {
		e.Schema = schema
	}
	return e
}

// cut keeps whole characters of the first max bytes.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	max -= len("…")
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

// Context is the text about the loaded tools that an agent is given: name,
// description and arguments of each, by name, at most max bytes. If not all fit,
// pinned ones go first, then those used last, and a last line says how many are
// missing. Without loaded tools it is empty.
func (s Set) Context(max int) string {
	if len(s.entries) == 0 {
		return ""
	}
	const more = "[%d more tools are loaded: tsh loads]\n"
	room := max - len(more) - 20
	if room < 0 {
		return ""
	}
	first := s.Entries()
	slices.SortStableFunc(first, func(a, b Entry) int {
		switch {
		case a.Pinned != b.Pinned && a.Pinned:
			return -1
		case a.Pinned != b.Pinned:
			return 1
		}
		return cmp.Compare(b.LastUsed, a.LastUsed)
	})
	blocks := map[libctx.Tool]string{}
	for _, e := range first {
		b := e.block()
		if room -= len(b) + 1; room < 0 {
			break
		}
		blocks[e.Name] = b
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(blocks)) {
		parts = append(parts, blocks[name])
	}
	if n := len(s.entries) - len(blocks); n > 0 {
		parts = append(parts, fmt.Sprintf(more, n))
	}
	return strings.Join(parts, "\n")
}

// block is the text about one tool.
func (e Entry) block() string {
	var b strings.Builder
	b.WriteString(string(e.Name))
	if e.Pinned {
		b.WriteString(" (pinned)")
	}
	b.WriteString("\n")
	if about := strings.TrimSpace(e.Description); about != "" {
		b.WriteString(about + "\n")
	}
	b.WriteString(Summary(string(e.Schema)))
	return b.String()
}

// Summary is what a person or model needs of an argument schema: the members,
// one a line, with type, whether they are required, and what they mean. A schema
// of another form has none.
func Summary(schema string) string {
	var s struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if err := wire.Object([]byte(schema), &s); err != nil {
		return ""
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		var p struct {
			Type        jsontext.Value `json:"type"`
			Description jsontext.Value `json:"description"`
		}
		_ = wire.Object(s.Properties[name], &p) // true and false are schemas too, and say nothing
		var about string
		if p.Description.Kind() == '"' {
			if text, err := jsontext.AppendUnquote(nil, p.Description); err == nil {
				about = oneLine(string(text))
			}
		}
		kind := strings.Trim(string(p.Type), `"`)
		if slices.Contains(s.Required, name) {
			kind = strings.TrimPrefix(kind+", required", ", ")
		}
		line := "  " + oneLine(name)
		if kind != "" {
			line += " (" + kind + ")"
		}
		if about != "" {
			line += "  " + about
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// oneLine keeps a text on its line and in its field.
func oneLine(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(s))
}
