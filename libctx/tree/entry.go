package tree

import (
	"io"
	"strings"

	"cortexfs.org/libctx"
)

// modelEntry is the entry of a model agent: a script that runs the tree's own
// ctx for it. With words it sends them, on a terminal without words it opens
// the chat, else it sends what it reads. It finds the tree by its own place, so
// that a tree can be moved.
func modelEntry(a libctx.Agent) io.Reader {
	return strings.NewReader("#!/bin/sh\n" +
		`d=${0%/*}; [ $# -eq 0 ] && [ -t 0 ] && exec "$d/../bin/ctx" --root "$d/.." agent chat ` + string(a) +
		`; exec "$d/../bin/ctx" --root "$d/.." agent send ` + string(a) + ` -- "$@"` + "\n")
}

// modelScript is the entry of a model: a script that runs it once, with the
// words it is given or with what it reads, and prints the frames of the answer.
// It finds the tree by its own place, also through an alias.
func modelScript(id libctx.Model) string {
	return "#!/bin/sh\n" +
		`f=$(readlink -f -- "$0"); r=${f%/*/*/*}; exec "$r/bin/ctx" --root "$r" model run --raw ` + string(id) + ` -- "$@"` + "\n"
}
