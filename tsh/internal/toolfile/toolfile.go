// Package toolfile reads the two-line files that built-in tools are in a tree:
// an interpreter line and the name of the tool.
package toolfile

import (
	"bytes"
	"io"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Read is the name in a two-line file. The path is the one the kernel resolved
// to start the interpreter, so links in it are followed; what it leads to must
// be a regular file. Errors are errdefs.Invalid or the kind of the system's
// errno.
func Read(path string) (libctx.Tool, error) {
	text, err := readAll(path)
	if err != nil {
		return "", err
	}
	name, err := Parse(text)
	if err != nil {
		return "", errdefs.New(errdefs.Invalid, "tool file %q: %w", path, err)
	}
	return name, nil
}

func readAll(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tool file: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errdefs.New(errdefs.Invalid, "tool file %q: is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, libctx.MaxToolScript+1))
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tool file: %w", err)
	}
	return text, nil
}

// Own reports whether the file at path is a two-line file whose interpreter is
// exactly this one, and may be executed.
func Own(path, interpreter string) bool {
	text, err := readAll(path)
	if err != nil || !bytes.HasPrefix(text, []byte("#!"+interpreter+"\n")) {
		return false
	}
	_, err = Parse(text)
	return err == nil && unix.Access(path, unix.X_OK) == nil
}

// Parse reads the text of a two-line file: a line that begins with #!, a line
// with a tool's name, nothing else. A text over libctx.MaxToolScript bytes or of
// another form is errdefs.Invalid.
func Parse(text []byte) (libctx.Tool, error) {
	if len(text) > libctx.MaxToolScript {
		return "", errdefs.New(errdefs.Invalid, "longer than %d bytes", libctx.MaxToolScript)
	}
	first, rest, ok := bytes.Cut(text, []byte("\n"))
	name, end, terminated := bytes.Cut(rest, []byte("\n"))
	if !ok || !terminated || len(end) != 0 || !bytes.HasPrefix(first, []byte("#!")) {
		return "", errdefs.New(errdefs.Invalid, "is not an interpreter line and a name")
	}
	t, err := libctx.ParseTool(string(name))
	if err != nil {
		return "", errdefs.New(errdefs.Invalid, "second line: %w", err)
	}
	return t, nil
}
