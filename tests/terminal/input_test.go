package terminal

import (
	"crypto/md5"
	"fmt"
	"strings"
	"testing"
)

// TestInput: what is typed, pasted and signalled reaches the program, and only from
// who is attached.
func TestInput(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.Write(l.Workspace+"/copy.sh", "echo copying; exec cat\n")
	r := l.start(t, "default")
	s := r.join(80, 60)
	ends := func(what string) {
		t.Helper()
		s.Await(what, func(all string) bool { return strings.HasSuffix(all, what) })
	}

	s.Type("bash copy.sh" + enter)
	ends("\ncopying")
	s.Type("a line" + enter)
	ends("\na line\na line")
	s.Type(ctrlZ)
	ends("\n[1]+ stopped   bash copy.sh\ncoder tsh 148>")
	s.Type("fg" + enter)
	ends("\nbash copy.sh")
	s.Type("more" + enter)
	ends("\nmore\nmore")
	s.Type(ctrlC)
	ends("^C\ncoder tsh 130>")

	// Pasted lines wait for Enter.
	s.Paste("status\nstatus\n")
	s.Type(enter)
	ends("\n130\n130\ncoder tsh 130>")
	s.Type("bash -c 'read -r x; echo \"it is $x\"; read -r y; echo \"and $y\"'" + enter)
	s.Type("漢字 é" + enter)
	ends("\nit is 漢字 é")
	s.Type("\x1e\x1e" + enter) // the key itself, sent on
	ends("\n^^\nand\ncoder tsh>")

	// Nothing of a large paste is lost.
	text := strings.Repeat("0123456789abcdef", 200<<10/16)
	s.Type(l.script("sum.sh", fmt.Sprintf("stty raw -echo; echo ready; head -c %d | md5sum; stty sane", len(text))) + enter)
	s.See("ready")
	s.Type(text)
	s.See(fmt.Sprintf("%x  -", md5.Sum([]byte(text))))
	ready(s)

	// A watcher's keys go nowhere.
	w := r.client("watch", 80, 60)
	w.Like(s)
	s.Type("bash -c true" + enter)
	ends("\ncoder tsh>")
	w.Type("echo never\r\x03\x04")
	if code := w.Exit(); code != 0 { // of Ctrl+C
		t.Errorf("watch: exit code %d", code)
	}
	s.Type("status" + enter)
	ends("\ncoder tsh> status\n0\ncoder tsh>")
	detach(t, s)
}

// TestSizes: the terminal is as large as the smallest attached client, whoever
// watches, and stays as it was when nobody is attached.
func TestSizes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	a := r.join(100, 30)
	a.Type(l.script("sizes.sh", `trap 'echo $(stty size) now' WINCH; stty -echo; echo $(stty size) first; sleep 1000 & while :; do wait; done`) + enter)
	a.See("30 100 first")
	w := r.client("watch", 20, 5)
	w.See("first")
	small := r.attach(80, 40)
	a.See("30 80 now")
	tiny := r.attach(30, 10)
	a.See("10 30 now")
	detach(t, tiny)
	a.Await("the size before", func(all string) bool { return strings.HasSuffix(all, "30 80 now") })
	detach(t, a)
	small.See("40 80 now")
	detach(t, small)
	w.Type("q")
	w.Exit()
	a = r.attach(80, 40)
	a.Await("no other size", func(all string) bool { return strings.HasSuffix(all, "40 80 now") })
	a.Type(ctrlC)
	ready(a)
	detach(t, a)
}

// TestFromInside: a terminal is not shown in itself.
func TestFromInside(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	s := r.join(80, 24)
	s.Type("bash -c 'ls -d /run/user /tmp/cw* /ctx/home/*/agent/coder/session/*/terminal/main.sock; ctx agent attach coder; echo $?'" + enter)
	s.See("127\n")
	text := s.Text()
	if strings.Contains(text, "main.sock\n") {
		t.Errorf("a socket is to be seen inside: %s", text)
	}
	detach(t, s)
}
