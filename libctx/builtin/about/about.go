// Package about is what models and people are told about the built-in tools:
// description, argument schema and examples, as text. It is apart from package builtin so
// that ctxtool, which starts for every call, links nothing more than this.
package about

import (
	"embed"
	"strings"

	"cortexfs.org/libctx"
)

//go:embed data
var data embed.FS

// Description is one line of text about a built-in tool, "" for other names.
func Description(name libctx.Tool) string { return text(name, "description") }

// Schema is the JSON Schema (draft 2020-12) of the arguments of a built-in
// tool, on one line, "" for other names.
func Schema(name libctx.Tool) string { return text(name, "schema") }

// Examples are calls of a built-in tool, one a line, as a POSIX shell reads it
// behind ctxtool or ctx agent tsh AGENT --: the tool's name, then words or one that
// is its arguments object. "" for other names.
func Examples(name libctx.Tool) string { return text(name, "examples") }

func text(name libctx.Tool, file string) string {
	b, err := data.ReadFile("data/" + string(name) + "/" + file)
	if err != nil {
		return "" // the only error of an embedded file: it is not there
	}
	return strings.TrimSuffix(string(b), "\n")
}
