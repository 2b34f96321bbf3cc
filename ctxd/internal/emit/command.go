package emit

import (
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/inert"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// command is a call in the form in which a person would type it, on one line and
// inert. Of tsh that is the call inside.
func command(name libctx.Tool, arguments jsontext.Value) string {
	words := words(name, arguments)
	if name != "tsh" {
		words = append([]string{string(name)}, words...)
	}
	return inert.Line(strings.Join(words, " "))
}

// words are the arguments of a call as words that are quoted where a shell would
// want it.
func words(name libctx.Tool, arguments jsontext.Value) []string {
	var members map[string]jsontext.Value
	if json.Unmarshal(arguments, &members) != nil {
		return []string{string(arguments)}
	}
	if list, ok := members["args"]; ok && len(members) == 1 {
		var args []string
		if json.Unmarshal(list, &args) == nil {
			if joined(name, args) {
				return args
			}
			return quoted(args)
		}
	}
	if f, ok := form.Of(name); ok {
		if list, ok := typed(f, members); ok {
			return list
		}
	}
	if len(members) == 0 {
		return nil
	}
	if len(members) == 1 {
		for _, value := range members {
			if text, ok := text(value); ok {
				return quoted([]string{text})
			}
		}
	}
	return []string{string(arguments)}
}

// joined reports whether the words of a call are one text to their tool.
func joined(name libctx.Tool, args []string) bool {
	if name == "tsh" && len(args) > 0 {
		name = libctx.Tool(args[0])
	}
	f, _ := form.Of(name)
	return f.Rest != ""
}

// typed is the command-line form of a built-in tool's arguments; false if there
// are members that it has no words for.
func typed(f form.Form, members map[string]jsontext.Value) ([]string, bool) {
	if f.Rest != "" {
		line, ok := text(members[f.Rest])
		return []string{line}, ok && len(members) == 1
	}
	var list []string
	said := 0
	for i, name := range f.Operands {
		value, ok := members[name]
		if !ok || said < i { // what comes after a gap needs its flag
			continue
		}
		list = append(list, quoted([]string{plain(value)})...)
		said++
	}
	used := said
	flags := slices.Concat(f.Numbers, f.Texts, f.Switches, f.Negations)
	for _, name := range flags {
		value, ok := members[name]
		if !ok || slices.Contains(f.Operands[:said], name) {
			continue
		}
		used++
		switch {
		case slices.Contains(f.Switches, name) && value.Kind() == 't':
			list = append(list, "--"+name)
		case slices.Contains(f.Negations, name) && value.Kind() == 'f':
			list = append(list, "--no-"+name)
		case value.Kind() == 't' || value.Kind() == 'f': // as if it were not there
		default:
			list = append(list, "--"+name, quoted([]string{plain(value)})[0])
		}
	}
	return list, used == len(members)
}

func text(value jsontext.Value) (string, bool) {
	var s string
	return s, value.Kind() == '"' && json.Unmarshal(value, &s) == nil
}

// plain is a text itself, and anything else as JSON.
func plain(value jsontext.Value) string {
	if s, ok := text(value); ok {
		return s
	}
	return string(value)
}

// quoted quotes the words that are more than plain ones.
func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		switch {
		case w != "" && strings.Trim(w, letters) == "":
			out[i] = w
		case strings.ContainsAny(w, "\n\t'"):
			out[i] = strconv.Quote(w)
		default:
			out[i] = "'" + w + "'"
		}
	}
	return out
}

// letters need no quotes.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%^"
