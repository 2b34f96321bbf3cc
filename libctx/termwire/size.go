package termwire

import (
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Size of a terminal in character cells, each side from 1 to
// libctx.MaxTermSide. The zero Size is none: that of a client which is no
// terminal.
type Size struct {
	Cols int `json:"cols,omitzero"`
	Rows int `json:"rows,omitzero"`
}

// DefaultSize is the size of a terminal that nobody sized.
var DefaultSize = Size{80, 24}

// ParseSize reads COLSxROWS. Errors are errdefs.Invalid.
func ParseSize(s string) (Size, error) {
	cols, rows, ok := strings.Cut(s, "x")
	size := Size{side(cols), side(rows)}
	if !ok || size.Valid() != nil {
		return Size{}, errdefs.New(errdefs.Invalid, "size %.40q is not COLSxROWS, each 1 to %d", s, libctx.MaxTermSide)
	}
	return size, nil
}

// side is a number as this package writes it, else 0.
func side(s string) int {
	if n, err := strconv.Atoi(s); err == nil && strconv.Itoa(n) == s {
		return n
	}
	return 0
}

// String is COLSxROWS.
func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

// Valid refuses, with errdefs.Invalid, a size that no terminal can have.
func (s Size) Valid() error {
	if min(s.Cols, s.Rows) < 1 || max(s.Cols, s.Rows) > libctx.MaxTermSide {
		return errdefs.New(errdefs.Invalid, "a terminal of %d columns and %d rows, not 1 to %d each", s.Cols, s.Rows, libctx.MaxTermSide)
	}
	return nil
}
