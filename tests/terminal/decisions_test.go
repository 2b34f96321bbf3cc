package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisions: what tsh decides about the commands of a person is in the
// terminal's record, and nothing else that runs there can write to it.
func TestDecisions(t *testing.T) {
	l := newLab(t, "fs.list")
	r := l.start(t, "default")
	s := r.attach(80, 24)
	s.Type("fs.list" + enter)
	s.See("README.md")
	s.Type("fs.write x y" + enter)
	s.See("no such tool")
	s.Type("bash -c 'ls /proc/self/fd | tr \"\\n\" +; echo seen'" + enter)
	s.See("0+1+2+3+seen") // the last one is the directory that is listed
	s.Type("exit" + enter)
	s.Exit()
	text, err := os.ReadFile(filepath.Join(l.Session("coder", "default"), "terminal/terminal-coder-default/events.jsonl"))
	must(t, err)
	var told []string
	for line := range strings.Lines(string(text)) {
		if _, rest, ok := strings.Cut(line, `"type":"tsh.policy",`); ok {
			told = append(told, rest)
		}
	}
	if len(told) != 3 || told[0] != `"name":"fs.list","allowed":true,"effect":"workspace_read"}`+"\n" ||
		!strings.HasPrefix(told[1], `"name":"fs.write","allowed":false,"code":"tool_not_found","reason":"`) ||
		told[2] != `"name":"bash","allowed":true,"effect":"host_process"}`+"\n" {
		t.Errorf("%q", told)
	}
}
