package terminal

import (
	"strings"
	"testing"
)

// TestHooks: a terminal, which shows the agent's own control directory, does not show
// its hooks, and nothing can be written there. What a person types there no hook looks
// at.
func TestHooks(t *testing.T) {
	t.Parallel()
	l := newLab(t, "fs.read")
	dir := l.Layout.Control("coder") + "/hooks"
	for _, d := range []string{dir, dir + "/pre.d"} {
		l.Mkdir(d, 0o755)
	}
	l.Write(dir+"/pre.d/10-secret", "#!/bin/sh\nexit 1\n")
	r := l.start(t, "default")
	got := r.does("cd /ctx/agent/coder.d; echo $(ls -A hooks | wc -l) hooks, $(ls policy); find / -xdev -name '*secret*' 2>/dev/null; " +
		"touch hooks/x 2>/dev/null || echo read-only; mv hooks other 2>/dev/null || rmdir hooks 2>/dev/null || echo it stays")
	if strings.TrimSpace(got) != "0 hooks, policy\nread-only\nit stays" {
		t.Errorf("%q", got)
	}
	s := r.join(80, 20)
	s.Type("fs.read README.md" + enter)
	s.See("lines 1-3 of 3")
}
