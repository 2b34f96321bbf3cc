package chat

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

const (
	question = "y/n, v shows all"
	escape   = "\x1b"
)

// asking is scripted with an agent whose calls have all to be allowed: each answer
// calls shell.exec with these commands, the next one says that it is done.
func asking(t *testing.T, commands ...string) *world.World {
	t.Helper()
	var calls []string
	for _, c := range commands {
		calls = append(calls, `{"name":"tsh","arguments":{"args":["shell.exec",`+world.JSON(c)+`]}}`)
	}
	w := scripted(t, []string{
		`{"block":"calls"}`, `{"answer":{"calls":[` + strings.Join(calls, ",") + `]}}`,
		`{"block":"end","repeat":true}`, `{"answer":{"text":"That is all."}}`,
	}, "shell.exec")
	w.MustCtx("agent", "set", "m", "approval", "ask")
	return w
}

func there(w *world.World, name string) bool {
	_, err := os.Stat(w.Workspace + "/" + name)
	return err == nil
}

// open waits until the question about what has this text can be answered.
func open(s *screen.Screen, text string) {
	s.Await("a question about "+text, func(shown string) bool {
		at := strings.LastIndex(shown, "May shell.exec run?")
		return at >= 0 && strings.Contains(shown[at:], text) && strings.Contains(shown[at:], question)
	})
}

// TestApproveInline: a turn with several calls, each of which is asked about by
// itself; what was typed stays in the line and answers nothing; the answers are in
// the history.
func TestApproveInline(t *testing.T) {
	w := asking(t, "echo one > one", "echo two > two", "echo three > three", "echo four > four")
	s := start(w, 70, 30)
	s.Type("go" + enter)
	open(s, "echo one > one")
	if there(w, "one") {
		t.Error("it ran before it was allowed")
	}
	s.Type("y")
	open(s, "echo two > two")
	s.Type("x" + escape + "[A") // means nothing
	s.Type("n")
	open(s, "echo three > three")
	s.Type(enter) // is no yes
	open(s, "echo four > four")
	s.Resize(60, 24)
	s.Paste("y\r")
	s.Type("v")
	s.See("q back")
	s.Type("y")
	s.Type("q")
	open(s, "echo four > four")
	if there(w, "four") {
		t.Error("a paste, or a key while it was looked at, allowed it")
	}
	s.Type("y")
	s.See("That is all.")
	s.Last(prompt)
	for name, want := range map[string]bool{"one": true, "two": false, "three": false, "four": true} {
		if there(w, name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	leave(t, s)
	out := w.MustCtx("agent", "history", "m")
	for _, want := range []string{"may shell.exec echo two > two run?", "answered: denied", "answered: allowed once"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "asked uid "); n != 4 {
		t.Errorf("%d questions in\n%s", n, out)
	}
}

// TestApproveTypedAhead: who is writing when the question comes does not answer it,
// and does not lose the line.
func TestApproveTypedAhead(t *testing.T) {
	w := asking(t, "echo one > one")
	s := start(w, 70, 30)
	s.Type("go" + enter + "yyy")
	open(s, "echo one > one")
	s.Type("n")
	s.See("answered: denied")
	s.See("That is all.")
	if there(w, "one") {
		t.Error("what was typed before allowed it")
	}
	s.Type("\x15")
	s.Last(prompt)
	leave(t, s)
}

// TestApproveSeesAll: a long command with characters that hide things is all to be
// seen, in pages.
func TestApproveSeesAll(t *testing.T) {
	lines := []string{"true a\u202eb\u200b \x1b[2J"}
	for range 100 {
		lines = append(lines, "true padding")
	}
	lines = append(lines, "echo hidden > hidden"+strings.Repeat(" ", 200)+"; echo far > far", "true the end")
	w := asking(t, strings.Join(lines, "\n"))
	s := start(w, 70, 24)
	s.Type("go" + enter)
	open(s, `true a\u202eb\u200b \x1b[2J`)
	s.See("more lines: v shows all")
	s.Type("v")
	s.See("lines 1-22 of ")
	seen := s.Text()
	for !strings.Contains(s.Text(), "true the end") {
		before := s.Text()
		s.Type(" ")
		s.Await("the next page", func(text string) bool { return text != before && strings.Contains(text, "q back") })
		seen += s.Text()
	}
	for _, want := range []string{`\x1b[2J`, "echo hidden > hidden", "echo far > far", "true the end"} {
		if !strings.Contains(seen, want) {
			t.Errorf("%q was not to be seen in\n%s", want, seen)
		}
	}
	s.Resize(60, 20)
	s.See("lines ")
	s.Type("q")
	s.Await("the question again", func(text string) bool { return strings.Contains(text, question) })
	s.Type("n")
	s.See("That is all.")
	s.Last(prompt)
	leave(t, s)
	if there(w, "hidden") {
		t.Error("it ran")
	}
}

// TestApproveCancel: Ctrl+C cancels the run, whatever it waits for, and nothing ran.
// A run that somebody else cancels takes its question along.
func TestApproveCancel(t *testing.T) {
	w := asking(t, "echo one > one")
	s := start(w, 70, 30)
	s.Type("go" + enter)
	open(s, "echo one > one")
	s.Type(ctrlC)
	s.See("cancelled")
	s.Last(prompt)
	w.Write(w.Dir+"/script.jsonl.at", "")
	s.Type("again" + enter)
	s.Await("a second question", func(text string) bool { return strings.Count(text, question) == 2 })
	w.MustCtx("agent", "cancel", "m")
	s.Await("the end of the second run", func(text string) bool { return strings.Count(text, "answered: the run was cancelled") == 2 })
	s.Last(prompt)
	s.Type("/help" + enter)
	s.See("/quit")
	s.Last(prompt)
	leave(t, s)
	if there(w, "one") {
		t.Error("it ran")
	}
}

// TestApproveEnds: a chat that ends while a question is open leaves the terminal as
// it was, and the call does not run.
func TestApproveEnds(t *testing.T) {
	w := asking(t, "echo one > one")
	s := start(w, 70, 30)
	s.Type("go" + enter)
	open(s, "echo one > one")
	s.Signal(os.Interrupt) // a question takes keys, not signals
	s.Signal(unix.SIGTERM)
	over(t, s, 130)
	out := w.MustCtx("agent", "resume", "m")
	if !strings.Contains(out, "That is all.") || there(w, "one") {
		t.Errorf("%s", out)
	}
}

// TestApprovePipe: where nobody can be asked the answer is no, and how it can be yes
// is said.
func TestApprovePipe(t *testing.T) {
	w := asking(t, "echo one > one")
	cmd := w.Command("ctx", "agent", "chat", "m")
	cmd.Stdin = strings.NewReader("go\n")
	r := w.Run(cmd)
	if r.Code != 0 || !strings.Contains(r.Err, "--approve shell.exec") || !strings.Contains(r.Out, "That is all.") || there(w, "one") {
		t.Errorf("%+v", r)
	}
}
