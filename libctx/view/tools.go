package view

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// Tools lists the names that the directories of the agent's path hold, sorted,
// each once, with the rights by which Lookup looks. Not every name need be a
// tool: Lookup tells. Errors are those of Prepare about directories.
func (a *Agent) Tools(l paths.Layout) ([]libctx.Tool, error) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	var all []libctx.Tool
	for _, dir := range a.Path {
		err := a.within(root, dir, func(d *atomicfile.Dir) error {
			found, err := names(d)
			for _, name := range found {
				if t, err := libctx.ParseTool(name); err == nil {
					all = append(all, t)
				}
			}
			return err
		})
		if err != nil && !passedOver(err) {
			return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", dir, bare(err))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Control is the text of one of the tool's control files as it was read, nil if
// there is none. An error says why one that is there could not be read.
func (t *Tool) Control(file string) ([]byte, error) { return t.text[file], t.unreadable[file] }
