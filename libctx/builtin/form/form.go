// Package form is the command-line form of the built-in tools: how words become
// the arguments object of each. The tools read their words by it and admission
// judges a call by it, so that both mean the same
// (docs/reference/tools.md, docs/reference/admission.md).
package form

import (
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Form is the command-line form of a tool: how words become its arguments. The
// empty form takes no words.
type Form struct {
	Operands  []string // members that words without a flag set, in order
	Needed    int      // how many of them a call must have; the tool says so, Usage tells
	Numbers   []string // members that are whole numbers; of --NAME N flags
	Texts     []string // members of --NAME TEXT flags
	Switches  []string // members of --NAME flags that become true
	Negations []string // members of --no-NAME flags that become false
	Rest      string   // if set: this member is all words joined by one space, and there are no flags
	Argv      bool     // the member args is the words as they are, in an object too, and there are no flags
}

// forms has a row for each tool that ctxtool serves.
var forms = map[libctx.Tool]Form{
	"agent.update": {Operands: []string{"control", "content"}, Needed: 2},
	"bash":         {Argv: true},
	"fs.list": {
		Operands: []string{"path"}, Numbers: []string{"depth", "limit"}, Texts: []string{"after"}, Switches: []string{"recursive"},
	},
	"fs.read": {
		Operands: []string{"path", "start", "lines"}, Needed: 1, Numbers: []string{"start", "lines", "column"}, Switches: []string{"numbers"},
	},
	"fs.replace": {Operands: []string{"path", "old", "new"}, Needed: 3, Texts: []string{"expected_hash"}, Switches: []string{"all"}},
	"fs.search": {
		Operands: []string{"pattern", "path"}, Needed: 1, Numbers: []string{"context", "limit"},
		Texts: []string{"mode", "glob", "case"}, Switches: []string{"hidden"}, Negations: []string{"ignore"},
	},
	"fs.stat":    {Operands: []string{"path"}, Needed: 1},
	"fs.write":   {Operands: []string{"path", "content"}, Needed: 2, Texts: []string{"expected_hash"}},
	"shell.exec": {Rest: "cmd"},
	"tmux":       {Argv: true},
	"tsh.config": {Numbers: []string{"max_loaded_tools", "cache_capacity", "window_percent"}},
	"zellij":     {Argv: true},
}

// Of is the form of a built-in tool; false for other names, tsh among them.
func Of(name libctx.Tool) (Form, bool) {
	f, ok := forms[name]
	return f, ok
}

// IsObject says whether a word that stands alone is meant as the arguments
// object itself: it begins like one, {", or is one. Whether it is right is for
// its reader to say. Such a word is a plain one behind a word "--".
func IsObject(word string) bool {
	return strings.HasPrefix(word, `{"`) || strings.HasPrefix(word, "{") &&
		jsontext.Value(word).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Object makes the arguments object that words stand for: the one word that is
// it (IsObject), as it is and unchecked, else what the words set. Flags may be
// anywhere before a word "--"; --NAME=VALUE works too. Errors are
// errdefs.Invalid.
func (f Form) Object(words []string) (jsontext.Value, error) {
	if len(words) == 1 && IsObject(words[0]) {
		return jsontext.Value(words[0]), nil
	}
	members := map[string]any{}
	if f.Argv {
		return Words(words)
	}
	if f.Rest != "" {
		if len(words) > 0 {
			members[f.Rest] = strings.Join(words, " ")
		}
		return encode(members)
	}
	var operands []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			operands = append(operands, words[i+1:]...)
			break
		}
		if len(w) < 2 || w[0] != '-' {
			operands = append(operands, w)
			continue
		}
		used, err := f.flag(members, words[i:])
		if err != nil {
			return nil, err
		}
		i += used - 1
	}
	if len(operands) > len(f.Operands) {
		return nil, errdefs.New(errdefs.Invalid, "arguments: %q is one word too many", operands[len(f.Operands)])
	}
	for i, w := range operands {
		if err := f.set(members, f.Operands[i], w); err != nil {
			return nil, err
		}
	}
	return encode(members)
}

// flag takes the flag at words[0] and says how many words it used.
func (f Form) flag(members map[string]any, words []string) (int, error) {
	name, value, joined := strings.Cut(strings.TrimPrefix(words[0], "--"), "=")
	if name == words[0] {
		name = "" // a single dash: no tool has short flags
	}
	if slices.Contains(f.Switches, name) && !joined {
		members[name] = true
		return 1, nil
	}
	if plain, no := strings.CutPrefix(name, "no-"); no && slices.Contains(f.Negations, plain) && !joined {
		members[plain] = false
		return 1, nil
	}
	if !slices.Contains(f.Numbers, name) && !slices.Contains(f.Texts, name) {
		return 0, errdefs.New(errdefs.Invalid, "arguments: unknown flag %q", words[0]).WithHint("%s", f.flags())
	}
	used := 1
	if !joined {
		if len(words) == 1 {
			return 0, errdefs.New(errdefs.Invalid, "arguments: flag %s has no value", words[0])
		}
		value, used = words[1], 2
	}
	return used, f.set(members, name, value)
}

// flags says which flags there are, in one line.
func (f Form) flags() string {
	var all []string
	for prefix, names := range map[string][]string{"--": slices.Concat(f.Numbers, f.Texts, f.Switches), "--no-": f.Negations} {
		for _, name := range names {
			all = append(all, prefix+name)
		}
	}
	if len(all) == 0 {
		return "it has no flags; words after -- are never flags"
	}
	slices.Sort(all)
	return "flags are " + strings.Join(all, " ") + "; words after -- are never flags"
}

// set gives a member its value: a number if it is one of Numbers, else text.
func (f Form) set(members map[string]any, name, value string) error {
	if !slices.Contains(f.Numbers, name) {
		members[name] = value
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return errdefs.New(errdefs.Invalid, "arguments: %s: %q is not a whole number", name, value)
	}
	members[name] = n
	return nil
}

// Words makes the command-line form {"args":[WORDS…]} itself.
func Words(words []string) (jsontext.Value, error) {
	return encode(map[string]any{"args": words})
}

// Usage is the command-line form in one line.
func (f Form) Usage(name string) string {
	switch {
	case f.Rest != "":
		return name + " WORDS…"
	case f.Argv:
		return name + " ARGS…"
	}
	for i, o := range f.Operands {
		if name += " "; i >= f.Needed {
			name += "["
		}
		name += strings.ToUpper(o)
	}
	name += strings.Repeat("]", len(f.Operands)-f.Needed)
	for _, s := range f.Switches {
		name += " [--" + s + "]"
	}
	for _, n := range f.Negations {
		name += " [--no-" + n + "]"
	}
	for _, n := range f.Numbers {
		if !slices.Contains(f.Operands, n) {
			name += " [--" + n + " N]"
		}
	}
	for _, t := range f.Texts {
		name += " [--" + t + " " + strings.ToUpper(t) + "]"
	}
	return name
}

// encode makes the object. A word that is not valid UTF-8 can not be a JSON
// string; a tool that takes such names has a quoted form for them.
func encode(members map[string]any) (jsontext.Value, error) {
	b, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "arguments: a word is not UTF-8 text").
			WithHint(`a file name that is not can be given in double quotes with \xNN, as fs.list shows it`)
	}
	return b, nil
}
