package toolshell

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Found is a tool with the file it is.
type Found struct {
	Name libctx.Tool
	Hit
}

// List is every tool of dirs, sorted by name, each with the file that Lookup
// finds for it. Directories that do not exist or can not be read hold nothing;
// other errors are those of Lookup.
func List(dirs []string) ([]Found, error) {
	var names []libctx.Tool
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, errdefs.New(errdefs.KindOf(err), "list tools: %w", err)
		}
		for _, e := range entries {
			if name, err := libctx.ParseTool(e.Name()); err == nil && e.Type().IsRegular() {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var list []Found
	for _, name := range slices.Compact(names) {
		hit, ok, err := Lookup(dirs, name)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, Found{name, hit})
		}
	}
	return list, nil
}
