// Package toolnames gives tools the names that providers allow for functions,
// and takes them back. It is the same for every wire format and does no I/O;
// docs/reference/model-openai.md says which name becomes which.
package toolnames

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
)

// maxFunction is the bytes of a function's name: the least of what providers
// take. All of them take letters, "_", and behind the first digits and "-".
const maxFunction = 64

// Unnamed stands for the name of a call whose name was none.
const Unnamed = "unknown"

// Table are the tools of a request as functions. Names of tools hold "." and
// "+", which functions can not.
type Table struct {
	function map[libctx.Tool]string
	tool     map[string]libctx.Tool
}

// New gives each tool its function's name: its own if that is one; else
// encode's; if that is too long or another tool's, a beginning of it, "_", and
// the tool's place in the list.
func New(tools []modelwire.Tool) *Table {
	n := &Table{map[libctx.Tool]string{}, map[string]libctx.Tool{}}
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

func (n *Table) add(tool libctx.Tool, function string) {
	n.function[tool], n.tool[function] = function, tool
}

// Of is the function of a tool. A tool of the history that this request does not
// declare is encoded like the others; no name is Unnamed.
func (n *Table) Of(tool libctx.Tool) string {
	if tool == "" {
		return Unnamed
	}
	if name := n.function[tool]; name != "" {
		return name
	}
	name := encode(tool)
	return name[:min(len(name), maxFunction)]
}

// Back is the tool that a model means: the one whose function it named, else
// what it wrote.
func (n *Table) Back(function string) string {
	if tool := n.tool[function]; tool != "" {
		return string(tool)
	}
	return function
}

// encode writes what no function's name can hold in letters that it can. Google
// wants no digit in front.
func encode(tool libctx.Tool) string {
	name := encoder.Replace(string(tool))
	if name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

var encoder = strings.NewReplacer(".", "__", "+", "_p_")
