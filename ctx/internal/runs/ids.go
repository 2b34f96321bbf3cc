package runs

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
)

// number is the place of a durable frame in its run, 0 for none.
func number(e libctx.Event) int {
	_, n, _ := strings.Cut(string(e), ".")
	i, _ := strconv.Atoi(n)
	return i
}

// unwrapPath drops the operation and the path from a file error that is shown
// behind its path anyway.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
