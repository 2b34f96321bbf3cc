package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// tally counts what happened and keeps what must not.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	faults []string
	more   int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// wrong keeps something that must not happen whatever is killed.
func (t *tally) wrong(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.faults) < 100 {
		t.faults = append(t.faults, fmt.Sprintf(format, args...))
	} else {
		t.more++
	}
}

// of is a count.
func (t *tally) of(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[what]
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.counts {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "  %-34s %d\n", name, t.counts[name])
	}
	return b.String()
}
