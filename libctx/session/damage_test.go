package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
)

// threeTurns is a session of three runs and its ledger by lines.
func threeTurns(t *testing.T) (Place, []string) {
	t.Helper()
	p := place(t)
	s := open(t, p, "default")
	for i := range 3 {
		turn(t, s, libctx.ClientID(fmt.Sprint("m", i)), fmt.Sprint("question ", i), fmt.Sprint("answer ", i))
	}
	closeOf(t, s)
	return p, strings.SplitAfter(strings.TrimSuffix(read(t, p.dir("default")+"/messages.jsonl"), "\n")+"\n", "\n")[:16]
}

// Lines of threeTurns: 1 session, then each turn is question, head, start,
// answer, checkpoint.
func TestDamage(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(lines []string)
		line    int
		kind    errdefs.Kind
		says    string
		history string // what a reader shows of the branch
	}{
		"not JSON": {func(l []string) { l[4] = "{\"seq\":5,\n" }, 5, errdefs.IO, "JSON",
			"question 0 | line 5 | question 1 answer 1 question 2 answer 2"},
		"empty line": {func(l []string) { l[8] = "\n" }, 9, errdefs.IO, "object",
			"question 0 answer 0 question 1 | line 9 | answer 1 question 2 answer 2"},
		"line of zeros": {func(l []string) { l[9] = strings.Repeat("\x00", 50) + "\n" }, 10, errdefs.IO, "object",
			"question 0 answer 0 question 1 | line 10 | question 2 answer 2"},
		"entry twice": {func(l []string) { l[9] = strings.Replace(l[9], `"e4"`, `"e3"`, 1) }, 10, errdefs.IO, "e3",
			"question 0 answer 0 question 1 | line 10 | question 2 answer 2"},
		"unknown parent": {func(l []string) { l[9] = strings.Replace(l[9], `"parent":"e3"`, `"parent":"e7"`, 1) }, 10, errdefs.IO, "e7",
			"question 0 answer 0 question 1 | line 10 | answer 1 question 2 answer 2"},
		"head of nothing": {func(l []string) { l[7] = strings.Replace(l[7], `"e3"`, `"e30"`, 1) }, 8, errdefs.IO, "e30",
			"question 0 answer 0 question 1 | line 8 | answer 1 question 2 answer 2"},
		"seq out of order": {func(l []string) { l[6], l[5] = l[5], l[6] }, 6, errdefs.IO, "seq",
			""},
		"a line is gone": {func(l []string) { l[10] = "" }, 11, errdefs.IO, "seq",
			"question 0 answer 0 question 1 answer 1 | line 11 | question 2 answer 2"},
		"no first record": {func(l []string) { l[0] = "" }, 1, errdefs.IO, "seq", ""},
		"another first record": {func(l []string) {
			l[0] = strings.Replace(l[0], `"type":"session","format":1`, `"type":"head","id":null`, 1)
		}, 1, errdefs.IO, "session",
			"| line 1 | question 0 answer 0 question 1 answer 1 question 2 answer 2"},
		"key twice": {func(l []string) { l[4] = strings.Replace(l[4], `"type"`, `"seq":5,"type"`, 1) }, 5, errdefs.IO, "duplicate",
			"question 0 | line 5 | question 1 answer 1 question 2 answer 2"},
		"not UTF-8": {func(l []string) { l[4] = strings.Replace(l[4], "answer", "\xff", 1) }, 5, errdefs.IO, "UTF-8",
			"question 0 | line 5 | question 1 answer 1 question 2 answer 2"},
		"newer format": {func(l []string) { l[0] = strings.Replace(l[0], `"format":1`, `"format":2`, 1) }, 1, errdefs.Invalid, "newer",
			"| line 1 | question 0 answer 0 question 1 answer 1 question 2 answer 2"},
		"unknown type": {func(l []string) { l[10] = strings.Replace(l[10], `"type":"checkpoint"`, `"type":"future"`, 1) }, 11, errdefs.Invalid, "future",
			"question 0 answer 0 question 1 answer 1 | line 11 | question 2 answer 2"},
	} {
		for _, torn := range []string{"", `{"seq":17,"ty`} {
			t.Run(name+torn, func(t *testing.T) {
				p, lines := threeTurns(t)
				test.change(lines)
				write(t, p.dir("default")+"/messages.jsonl", strings.Join(lines, "")+torn)
				before := treeOf(t, p.Layout.Root)

				_, err := p.Open("default")
				wantKind(t, err, test.kind, "messages.jsonl", fmt.Sprintf("line %d:", test.line), test.says)
				var d *Damage
				if !errors.As(err, &d) || d.Line != int64(test.line) {
					t.Errorf("damage is %+v", d)
				}
				r, err := p.Read("default")
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if got := r.Info().Damage; !strings.Contains(got, fmt.Sprintf("line %d:", test.line)) {
					t.Errorf("info says %q", got)
				}
				if got := r.Torn(); got != int64(len(torn)) {
					t.Errorf("torn is %d", got)
				}
				if got := history(r); test.history != "" && got != test.history {
					t.Errorf("history is\n%s\nwant\n%s", got, test.history)
				}
				// Line by line everything is there, what is wrong is marked.
				var text strings.Builder
				marked := false
				for {
					l, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&text, "%s\n", l.Text)
					if l.Err != nil {
						marked = marked || l.N == int64(test.line)
						wantKind(t, l.Err, test.kind)
					}
					if l.Record == nil && l.Err == nil {
						t.Errorf("line %d has neither record nor error", l.N)
					}
				}
				if text.String() != strings.Join(lines, "") || !marked {
					t.Errorf("lines are (marked %v)\n%s", marked, &text)
				}
				if after := treeOf(t, p.Layout.Root); after != before {
					t.Errorf("changed\n%s\nto\n%s", before, after)
				}
			})
		}
	}
}

// history is the branch as words, damage as line numbers between bars.
func history(r *Reader) string {
	var out []string
	for e, err := range r.Branch() {
		var d *Damage
		switch {
		case err == nil:
			out = append(out, e.Text())
		case errors.As(err, &d):
			out = append(out, fmt.Sprintf("| line %d |", d.Line))
		default:
			out = append(out, err.Error())
		}
	}
	return strings.Join(out, " ")
}

func TestUnknownMembersAreTolerated(t *testing.T) {
	p, lines := threeTurns(t)
	for i := range lines {
		lines[i] = strings.Replace(lines[i], `"ts":`, `"new":{"a":[1]},"ts":`, 1)
	}
	write(t, p.dir("default")+"/messages.jsonl", strings.Join(lines, ""))
	s := open(t, p, "default")
	turn(t, s, "m9", "more", "yes")
	if entries, err := s.Conversation(1 << 20); err != nil || len(entries) != 8 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

func TestTornTailIsCut(t *testing.T) {
	p, lines := threeTurns(t)
	dir := p.dir("default")
	log := read(t, dir+"/events.jsonl")
	write(t, dir+"/messages.jsonl", strings.Join(lines, "")+strings.Repeat("x", 200_000))
	write(t, dir+"/events.jsonl", log+`{"type":"star`)
	s := open(t, p, "default")
	if got := read(t, dir+"/messages.jsonl"); got != strings.Join(lines, "") {
		t.Errorf("ledger is %.300q", got)
	}
	if got := read(t, dir+"/events.jsonl"); got != log {
		t.Errorf("events are %q", got)
	}
	turn(t, s, "m9", "more", "yes")
}

// TestHalfWrittenProjectionsAreSwept: a process killed while it replaced a
// projection leaves nothing that stays.
func TestHalfWrittenProjectionsAreSwept(t *testing.T) {
	p, _ := threeTurns(t)
	dir := p.Layout.Sessions(p.Owner.UID, p.Agent) + "/default"
	for _, at := range []string{dir, dir + "/context"} {
		if err := os.WriteFile(at+"/"+atomicfile.TempPrefix+"dead", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := p.Open("default")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, at := range []string{dir, dir + "/context"} {
		if left, _ := filepath.Glob(at + "/" + atomicfile.TempPrefix + "*"); left != nil {
			t.Errorf("left: %v", left)
		}
	}
}

// A log that does not agree with the ledger is made again, and nothing else is.
func TestEventsAreMended(t *testing.T) {
	for name, change := range map[string]func(log string) string{
		"gone":        func(string) string { return "" },
		"cut":         func(log string) string { return log[:len(log)/2] },
		"other bytes": func(log string) string { return strings.Replace(log, "answer 1", "forged 1", 1) },
		"longer":      func(log string) string { return log + log },
		"zeros":       func(log string) string { return log[:300] + strings.Repeat("\x00", len(log)-300) },
	} {
		for _, index := range []bool{true, false} {
			p, lines := threeTurns(t)
			dir := p.dir("default")
			log := read(t, dir+"/events.jsonl")
			write(t, dir+"/events.jsonl", change(log))
			if !index {
				os.Remove(dir + "/" + indexFile)
			}
			s := open(t, p, "default")
			if got := read(t, dir+"/events.jsonl"); got != log {
				t.Errorf("%s: events are\n%s", name, got)
			}
			checkFiles(t, p, s, []byte(strings.Join(lines, "")), true)
			if got := read(t, dir+"/messages.jsonl"); got != strings.Join(lines, "") {
				t.Errorf("%s: the ledger changed", name)
			}
		}
	}
}

func TestSomebodyElseAppends(t *testing.T) {
	p, lines := threeTurns(t)
	s := open(t, p, "default")
	write(t, p.dir("default")+"/messages.jsonl", strings.Join(lines, "")+"x\n")
	_, err := s.Commit(begin(s, libctx.NewRun(), "m9", "x")...)
	wantKind(t, err, errdefs.Busy, "changed by somebody else")
	if _, again := s.Commit(&Head{}); again != err {
		t.Errorf("the second call says %v", again)
	}
	if got := read(t, p.dir("default")+"/messages.jsonl"); got != strings.Join(lines, "")+"x\n" {
		t.Error("the ledger was changed")
	}
	closeOf(t, s)
}

func TestReadWhileWriting(t *testing.T) {
	p := place(t)
	if _, err := p.Read("default"); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("nothing there: %v", err)
	}
	s := open(t, p, "default")
	run := libctx.NewRun()
	commit(t, s, append(begin(s, run, "m", "q"), says(run, "half"))...)
	r, err := p.Read("default") // the writer has it open
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	commit(t, s, says(run, "whole"), done(run))
	if got, err := r.Latest(); got != "half" || err != nil || history(r) != "q half" || r.Info().Active != run {
		t.Errorf("latest %q %v, history %q, active %s", got, err, history(r), r.Info().Active)
	}
	after, err := p.Read("default")
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got, err := after.Latest(); got != "whole" || err != nil || after.Info().State != StateDone {
		t.Errorf("latest %q %v", got, err)
	}
}

// More damage than a reader lists is counted.
func TestManyDamagedLines(t *testing.T) {
	p, lines := threeTurns(t)
	write(t, p.dir("default")+"/messages.jsonl", lines[0]+strings.Repeat("{\n", 5000)+strings.Join(lines[1:], ""))
	r, err := p.Read("default")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	list := r.Damage()
	if len(list) != maxDamage+1 || !strings.Contains(list[maxDamage].Error(), "more lines") {
		t.Errorf("%d places, the last %v", len(list), list[len(list)-1])
	}
}

func TestOverlongLine(t *testing.T) {
	p, lines := threeTurns(t)
	long := bytes.Repeat([]byte("x"), libctx.MaxRecord+10)
	long[len(long)-1] = '\n'
	write(t, p.dir("default")+"/messages.jsonl", lines[0]+string(long)+strings.Join(lines[1:], ""))
	_, err := p.Open("default")
	wantKind(t, err, errdefs.IO, "line 2:", fmt.Sprint(libctx.MaxRecord))
	r, err := p.Read("default")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, want := history(r), "| line 2 | | line 3 | question 0 answer 0 question 1 answer 1 question 2 answer 2"; got != want {
		t.Errorf("history is %s, want %s", got, want)
	}
	n := 0
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		n++
	}
	if n != 17 {
		t.Errorf("%d lines", n)
	}
}
