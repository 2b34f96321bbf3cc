package openai

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
)

// maxFunction is the bytes of a function's name; OpenAI takes letters, digits,
// "_" and "-".
const maxFunction = 64

// names are the tools of a request as functions. Names of tools hold "." and
// "+", which functions can not.
type names struct {
	function map[libctx.Tool]string
	tool     map[string]libctx.Tool
}

// newNames gives each tool its function's name: its own if that is one; else
// encode's; if that is too long or another tool's, a beginning of it, "_", and
// the tool's place in the list.
func newNames(tools []modelwire.Tool) *names {
	n := &names{map[libctx.Tool]string{}, map[string]libctx.Tool{}}
	for _, t := range tools {
		if name := string(t.Name); encode(t.Name) == name {
			n.add(t.Name, name)
		}
	}
	for i, t := range tools {
		if n.function[t.Name] != "" {
			continue
		}
		name := encode(t.Name)
		for at := i; len(name) > maxFunction || n.tool[name] != ""; at += len(tools) {
			suffix := "_" + strconv.Itoa(at)
			name = encode(t.Name)
			name = name[:min(len(name), maxFunction-len(suffix))] + suffix
		}
		n.add(t.Name, name)
	}
	return n
}

func (n *names) add(tool libctx.Tool, function string) {
	n.function[tool], n.tool[function] = function, tool
}

// of is the function of a tool. A tool of the history that this request does not
// declare is encoded like the others.
func (n *names) of(tool libctx.Tool) string {
	if name := n.function[tool]; name != "" {
		return name
	}
	name := encode(tool)
	return name[:min(len(name), maxFunction)]
}

// back is the tool that a model means: the one whose function it named, else
// what it wrote.
func (n *names) back(function string) string {
	if tool := n.tool[function]; tool != "" {
		return string(tool)
	}
	return function
}

// encode writes what no function's name can hold in letters that it can.
func encode(tool libctx.Tool) string { return encoder.Replace(string(tool)) }

var encoder = strings.NewReplacer(".", "__", "+", "_p_")
