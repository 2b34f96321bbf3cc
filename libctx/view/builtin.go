package view

import (
	"bytes"
	"errors"
	"io"

	"cortexfs.org/libctx/builtin"
)

// BuiltIn reports whether the file behind the tool is that of the built-in one of
// its name, so that it is known what it does.
func (t *Tool) BuiltIn() bool {
	known, ok := builtin.Find(t.Name)
	if !ok || t.file == nil {
		return false
	}
	want := known.Files()[""]
	text := make([]byte, len(want)+1)
	n, err := t.file.ReadAt(text, 0)
	return errors.Is(err, io.EOF) && bytes.Equal(text[:n], want)
}
