package cli

import (
	"slices"
	"strings"

	"cortexfs.org/libctx/toolshell/command"
)

// words completes commands, and the words of builtins; those of tools are names of
// files.
func (t *terminal) words(before, _ string) (words []string, files bool) {
	row := strings.Fields(before[strings.LastIndexByte(before, '\n')+1:])
	if len(row) == 0 {
		return slices.Concat(t.builtins(), t.tools()), false
	}
	switch row[0] {
	case "help", "type", "command":
		return slices.Concat(t.builtins(), t.tools()), false
	case "which", "load", "unload", "pin", "unpin":
		return t.tools(), false
	}
	return nil, !slices.Contains(t.builtins(), row[0])
}

func (t *terminal) builtins() (names []string) {
	for _, b := range append(command.Builtins(), command.Terminal()...) {
		names = append(names, b.Name)
	}
	return names
}

// tools are the names of those that can be called now; if that can not be told,
// none.
func (t *terminal) tools() (names []string) {
	items, _ := t.catalog().List()
	for _, i := range items {
		if i.Refused == "" {
			names = append(names, string(i.Name))
		}
	}
	return names
}
