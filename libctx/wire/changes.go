package wire

import "cortexfs.org/libctx"

// Changes says what became different in the workspace while a run worked, as
// far as is known (docs/reference/changes.md). It comes once, before the end of a
// run that changed something, or of which it is not known whether it did.
type Changes struct {
	Head
	Workspace string   `json:"workspace"` // host directory
	Paths     []Change `json:"paths"`     // the listed and executable ones first, then by name
	More      int      `json:"more,omitzero"`

	// Of all paths, those in More too.
	Listed     int `json:"listed,omitzero"`
	Executable int `json:"executable,omitzero"`

	Exact      bool     `json:"exact,omitzero"`      // only tools ran that say what they change
	Beside     bool     `json:"beside,omitzero"`     // another run of the agent worked in the workspace at the same time
	Incomplete []string `json:"incomplete,omitzero"` // why there may be changes that are not known: words below
}

// Change is one path of Changes.
type Change struct {
	Path       string `json:"path"`                // relative to the workspace; a Go string literal if it is not plain to see
	Kind       string `json:"kind"`                // "file", "dir", "link" or "other"
	What       string `json:"what"`                // "created", "changed"; of a directory "changed" is that entries went, or its mode
	Listed     bool   `json:"listed,omitzero"`     // other programs act on it by themselves
	Executable bool   `json:"executable,omitzero"` // a file that can be executed
	Below      int    `json:"below,omitzero"`      // paths below a new directory that are not listed themselves
}

// What Change says of a path.
const (
	Created = "created"
	Changed = "changed"
)

// Why Changes may be incomplete.
const (
	ManyEntries = "entries" // there are more than libctx.MaxWalkEntries
	LongWalk    = "time"    // the search took libctx.WalkTime
	Closed      = "closed"  // a directory could not be read
	ClockSet    = "clock"   // the clock was set meanwhile
	Remote      = "remote"  // the times are those of another machine
	Exchanged   = "gone"    // the workspace is not where it was
)

// Size is the number of paths, those that are not listed too.
func (c *Changes) Size() (n int) {
	n = len(c.Paths) + c.More
	for _, p := range c.Paths {
		n += p.Below
	}
	return n
}

// Fits reports whether one more path can be listed beside n of text bytes.
func (c Change) Fits(n, text int) bool {
	return n < libctx.MaxChanges && text+len(c.Path) <= libctx.MaxChangeText
}
