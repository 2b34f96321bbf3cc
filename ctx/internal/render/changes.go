package render

import (
	"fmt"
	"strings"

	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
)

// maxAlarms is how many paths of one run are named where it is shown.
const maxAlarms = 10

// Changes says on one line how much a run changed.
func Changes(f *wire.Changes) string {
	var what string
	switch n := f.Size(); n {
	case 0:
		what = "nothing is known to have changed in the workspace"
	default:
		what = count(n, "path") + " changed in the workspace"
	}
	if f.Beside {
		what += ", by this run or by another one beside it"
	}
	if why := Incomplete(f.Incomplete); why != "" {
		what += "; there may be more: " + why
	}
	return what
}

// Alarms names what of the changes other programs may act on, a line each.
func Alarms(f *wire.Changes) (lines []string) {
	for _, c := range f.Paths {
		if !c.Listed && !c.Executable {
			break // these come first
		}
		if len(lines) == maxAlarms {
			lines = append(lines, "and more: ctx agent changes lists them")
			break
		}
		lines = append(lines, c.What+" in the workspace: "+inert.Line(c.Path)+" ("+Mark(c)+")")
	}
	return lines
}

// Mark says in words why a person should look at a path, "" if there is no reason.
func Mark(c wire.Change) string {
	var why []string
	if c.Listed {
		why = append(why, "other programs act on it")
	}
	if c.Executable {
		why = append(why, "executable")
	}
	return strings.Join(why, ", ")
}

// Incomplete says in words why changes may not be all there are.
func Incomplete(words []string) string {
	var why []string
	for _, word := range words {
		switch word {
		case wire.ManyEntries:
			word = "it has too many entries to look at"
		case wire.LongWalk:
			word = "looking at it took too long"
		case wire.Closed:
			word = "a directory could not be read"
		case wire.ClockSet:
			word = "the clock was set meanwhile"
		case wire.Remote:
			word = "its times may be those of another machine"
		case wire.Exchanged:
			word = "it is not where it was"
		default:
			word = inert.Line(fmt.Sprintf("%q", word))
		}
		why = append(why, word)
	}
	return strings.Join(why, ", ")
}
