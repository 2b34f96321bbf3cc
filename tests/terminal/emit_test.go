package terminal

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
)

// TestEmit: who looks on sees what the agent does, between what the program shows
// and what is typed, and never as typed.
func TestEmit(t *testing.T) {
	t.Parallel()
	l := newLab(t, "fs.read", "fs.list")
	r := l.start(t, "default")
	s := r.join(80, 24)
	w := r.client("watch", 80, 24)
	small := r.client("watch", 60, 12)
	s.Type("sta")
	s.Last(prompt + " sta")
	if got := l.MustCtx("agent", "tsh", "coder", "--", "fs.read", "README.md"); !strings.Contains(got, "three") {
		t.Errorf("%q", got)
	}
	for _, x := range []*screen.Screen{s, w, small} {
		x.See("┃ coder fs.read README.md\n┃ one\n┃ two\n┃ three\n")
		x.Last(prompt + " sta") // where it was, as it was
	}
	s.Type("tus" + enter)
	s.See(prompt + " status\n0\n" + prompt)
	w.Like(s)

	l.MustCtx("agent", "send", "coder", "run: bash -c 'echo hello; printf \"\\033[2J\\033]52;c;x\\a\"; exit 3'\nthen:\nrun: fs.list .")
	for _, x := range []*screen.Screen{s, w} {
		x.See("┃ hello\n")
		x.See("┃ coder fs.list .\n")
		x.See("README.md\n┃ ok, ")
		ready(x)
	}
	w.Like(s)

	// While a program has the whole screen it waits.
	s.Type("bash -c 'vim -u NONE -i NONE README.md'" + enter)
	s.See("\n~\n")
	w.Like(s)
	before := s.Look()
	l.MustCtx("agent", "tsh", "coder", "--", "fs.read", "README.md", "--start", "3")
	s.Type("G")
	s.Looks("the last line, and nothing else", func(look screen.Look) bool {
		before.Row = 2
		return look.Difference(before) == ""
	})
	w.Like(s)
	s.Type(":q" + enter)
	for _, x := range []*screen.Screen{s, w} {
		x.See("┃ coder fs.read README.md --start 3\n┃ three\n")
		ready(x)
		if strings.Contains(x.Text(), "~\n~\n") {
			t.Errorf("%s", x.Text())
		}
	}
	w.Like(s)
	w.Type("q")
	w.Exit()
	detach(t, s)

	quiet := l.start(t, "quiet", "--no-emit")
	s = quiet.join(80, 24)
	l.MustCtx("agent", "tsh", "--session", "quiet", "coder", "--", "fs.read", "README.md")
	s.Type("status" + enter)
	s.See(prompt + " status\n0\n" + prompt)
	if strings.Contains(s.Text(), "three") {
		t.Errorf("%s", s.Text())
	}
	detach(t, s)
}

// replay shows bytes on a terminal of that size.
func (l *lab) replay(t *testing.T, text string, columns, rows int) *screen.Screen {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bytes")
	l.Write(file, text)
	return screen.Start(t, exec.Command("/bin/sh", "-c", `stty raw -echo; cat "$1"; exec cat >/dev/null`, "sh", file), columns, rows)
}

// TestExport: the record draws the screen that was seen.
func TestExport(t *testing.T) {
	t.Parallel()
	l := newLab(t, "fs.read")
	l.Write(l.Workspace+"/long", long())
	r := l.start(t, "default")
	s := r.join(80, 24)
	s.Type("bash -c 'seq 50; printf \"\\033[1;32mgreen\\033[m\\n\"; less -R long'" + enter)
	s.See("\nlong")
	s.Type("q")
	ready(s)
	l.MustCtx("agent", "tsh", "coder", "--", "fs.read", "README.md")
	s.See("┃ three")
	ready(s)
	s.Type("bash -c 'cat long; echo all of it'" + enter)
	s.See("\nall of it\n" + prompt)
	seen := s.Look()
	var bytes string
	l.Await(l.Layout.TerminalResource(uint32(l.UID), "coder", "default"), func() bool {
		bytes = l.MustCtx("terminal", "export", "coder/default")
		return strings.Count(bytes, "all of it") > 1 && strings.HasSuffix(bytes, s.Raw()[len(s.Raw())-40:])
	})
	l.replay(t, bytes, 80, 24).Shows(seen)

	cast := strings.TrimSuffix(l.MustCtx("terminal", "export", "--cast", "coder/default"), "\n")
	var head struct{ Version, Width, Height int }
	var drawn strings.Builder
	last := -1.0
	for i, line := range strings.Split(cast, "\n") {
		if i == 0 {
			if err := json.Unmarshal([]byte(line), &head); err != nil || head.Version != 2 || head.Width != 80 || head.Height != 24 {
				t.Errorf("%s: %v", line, err)
			}
			continue
		}
		var event [3]any
		must(t, json.Unmarshal([]byte(line), &event))
		if at := event[0].(float64); at < last {
			t.Errorf("%s: before what came before it", line)
		} else {
			last = at
		}
		if event[1] == "o" {
			drawn.WriteString(event[2].(string))
		}
	}
	l.replay(t, drawn.String(), 80, 24).Shows(seen)
	detach(t, s)
}
