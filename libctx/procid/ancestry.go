package procid

import (
	"slices"

	"cortexfs.org/libctx/errdefs"
)

// Descends follows the parents of a process upwards, at most depth of them, until
// known takes one for what is looked for, the process itself first, and returns
// that one. Everything that is not certain is errdefs.Denied: a process on the way
// that is gone or a zombie, that got another parent meanwhile, that is younger
// than its child and so another one by the same number, a circle, and an end
// before anything was known.
//
// The answer is about processes as they were found. Whoever relies on it holds the
// first by a Handle from before the call, and asks after it whether that has ended.
func Descends(pid, depth int, known func(ID) bool) (ID, error) {
	return descends(pid, depth, known, read)
}

func descends(pid, depth int, known func(ID) bool, read func(int) (stat, error)) (ID, error) {
	no := func(pid int, why string) (ID, error) {
		return ID{}, errdefs.New(errdefs.Denied, "process %d: %s", pid, why)
	}
	child, err := read(pid)
	if err != nil {
		return no(pid, "is gone")
	}
	var way []int
	for {
		switch at := (ID{PID: pid, Start: child.start}); {
		case !child.alive():
			return no(pid, "has ended")
		case slices.Contains(way, pid):
			return no(pid, "is its own ancestor")
		case known(at):
			return at, nil
		case len(way) >= depth:
			return no(pid, "has too many descendants between it and the one that was asked about")
		case child.parent <= 0:
			return no(pid, "has no parent here")
		}
		parent, err := read(child.parent)
		if err != nil {
			return no(child.parent, "is gone")
		}
		// Read once more: the number was its parent's before and after the parent
		// was looked at, so it was the parent that was looked at.
		again, err := read(pid)
		switch {
		case err != nil || again.start != child.start:
			return no(pid, "is gone")
		case again.parent != child.parent:
			return no(pid, "got another parent")
		case parent.start > child.start:
			return no(child.parent, "is younger than its child")
		}
		way = append(way, pid)
		pid, child = child.parent, parent
	}
}

// alive reports whether it is a process that can do something.
func (s stat) alive() bool { return s.state != 'Z' && s.state != 'X' && s.state != 'x' }
