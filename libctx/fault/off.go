//go:build !faults

package fault

import (
	"io"
	"time"
)

// Point is where the process may be killed.
func Point(name string) {}

// Site is the name of a point that several steps share the code of.
type Site struct{}

// At makes a Site of a name.
func At(name string) Site { return Site{} }

// Write writes b to w; it is where a write may tear, with the process or with
// an error.
func Write(at Site, w io.Writer, b []byte) (int, error) { return w.Write(b) }

// Fail is where a step may be refused: the error is the step's own.
func Fail(name string) error { return nil }

// Off reports whether a check is switched off, which it never is here.
func Off(name string) bool { return false }

// Now is the host's clock.
func Now() time.Time { return time.Now() }
