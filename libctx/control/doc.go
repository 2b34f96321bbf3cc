// Package control is the grammar of every control file of agents, tools and models:
// the files of agent/NAME.d, tool/NAME.d and model/PROVIDER/NAME.d
// (docs/reference/control.md).
//
// A control file is one value and LF, or one value a line, at most 64 KiB. Each
// grammar has one canonical text: writing what was parsed gives the same bytes.
// Two are read more widely than they are written, path (also as one colon list)
// and timeout (also 90s for 1m30s), and policy, which has spacing of its own;
// Canonical turns those, and a value without its LF, into the canonical text.
// system.md and prompt.template.md are free text, kept byte for byte.
//
// Nothing here touches a file, and nothing decides what a value allows. Every
// error is errdefs.Invalid and wraps an *Error that names file, line and token.
package control

import "cortexfs.org/libctx/linefile"

// Error says what is wrong in a control file, and where.
type Error = linefile.Error

// Line is the text of a file that holds one value.
func Line(value string) []byte { return append([]byte(value), '\n') }

// List is the text of a file that holds one value a line; no values is the
// empty text.
func List(values []string) []byte {
	var b []byte
	for _, v := range values {
		b = append(append(b, v...), '\n')
	}
	return b
}
