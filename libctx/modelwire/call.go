package modelwire

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// Call makes the part of the n-th call of a message, n from 1, of the name and
// the arguments as a model wrote them. Blank arguments are an empty object. A
// name that is no tool's name, or arguments that are not one JSON object (or
// nested deeper than libctx.MaxModelDepth), make a part with Invalid. Arguments
// over libctx.MaxModelArguments are the caller's to refuse, before they are
// collected.
func Call(n int, name, arguments string) wire.Part {
	p := wire.Part{Type: "tool_call", Call: callID(n), Arguments: jsontext.Value("{}")}
	invalid := func(what, text string) wire.Part {
		p.Arguments = jsontext.Value("{}")
		p.Invalid, _ = clip(what+": "+wire.Clean([]byte(text[:min(len(text), libctx.MaxInvalid)])), libctx.MaxInvalid)
		return p
	}
	tool, err := libctx.ParseTool(name)
	if err != nil {
		return invalid("not the name of a tool", name)
	}
	p.Name = tool
	if strings.Trim(arguments, " \t\r\n") == "" {
		return p
	}
	v := jsontext.Value(arguments).Clone()
	switch {
	case !v.IsValid():
		return invalid("the arguments are not JSON", arguments)
	case v.Kind() != '{':
		return invalid("the arguments are not an object", arguments)
	case depth(v) > libctx.MaxModelDepth:
		return invalid("the arguments are nested too deep", arguments)
	}
	if err := v.Compact(); err != nil {
		return invalid("the arguments are not JSON", arguments)
	}
	p.Arguments = v
	return p
}

func callID(n int) libctx.Call { return libctx.Call("call-" + strconv.Itoa(n)) }

func isObject(v jsontext.Value) bool { return v.Kind() == '{' && v.IsValid() }

// depth is how deep a valid value is nested: 0 of a number, 1 of {}.
func depth(v jsontext.Value) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}
