package chat

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"golang.org/x/sys/unix"
)

// TestStreamWhileTyping: a long answer comes in many pieces while somebody types,
// and the terminal changes its size; the line that is being written stays whole.
func TestStreamWhileTyping(t *testing.T) {
	w := scripted(t, []string{
		`{"block":"call"}`,
		`{"answer":{"text":"first part","calls":[{"name":"tsh","arguments":{"args":["shell.exec","cat gate"]}}]}}`,
		`{"block":"rest"}`,
		`{"answer":{"text":"` + strings.Repeat(`a line of the answer\n`, 500) + `the end"}}`,
	}, "shell.exec")
	open := gate(w, "gate")
	s := start(w, 60, 20)
	s.Type("go" + enter)
	s.See("shell.exec cat gate")
	s.Type("some words that 日本語 are longer than the line is wide, so it wraps")
	s.See("so it wraps")
	s.Resize(40, 20)
	s.Type(" twice")
	s.See("twice")
	open()
	s.See("the end")
	s.Await("the line, whole, below the answer", func(text string) bool {
		_, line, found := strings.Cut(text, "the end")
		return found && strings.HasSuffix(strings.ReplaceAll(line, "\n", ""), prompt+" some words that 日本語 are longer than the line is wide, so it wraps twice")
	})
	if n := strings.Count(s.Text(), "a line of the answer"); n != 500 {
		t.Errorf("%d lines of the answer are to be seen", n)
	}
	s.Type(ctrlC)
	over(t, s, 0)
}

// TestBigPaste: a paste of a mebibyte is one mark in the line, and as it does not
// fit into a request, the message is refused and not lost.
func TestBigPaste(t *testing.T) {
	w := modelled(t, "debug/echo")
	s := start(w, 80, 24)
	s.Paste(strings.Repeat("0123456789abcde\n", 1<<16))
	s.See("[paste 1: 1.0 MiB, 65537 lines]")
	s.Type(enter)
	s.See("over the limit of")
	s.Last(prompt + " [paste 1: 1.0 MiB, 65537 lines]")
	s.Type("\x15")
	s.Last(prompt)
	s.Paste(strings.Repeat("x", 300<<10) + "\nend")
	s.See("[paste 2: 300.0 KiB, 2 lines]")
	s.Type(enter)
	s.Await("the echo of it", func(text string) bool { return strings.HasSuffix(text, "\nend\n\n"+prompt) })
	leave(t, s)
	if got := strings.TrimRight(w.MustCtx("agent", "output", "m"), "\n"); got != strings.Repeat("x", 300<<10)+"\nend" {
		t.Errorf("%d bytes came back", len(got))
	}
}

// TestHostileKeys: a paste that looks like the terminal's own words, and keys
// nobody has.
func TestHostileKeys(t *testing.T) {
	w := modelled(t, "debug/echo")
	s := start(w, 80, 24)
	s.Type("\x1b[1;2R\x1b[5;5R")
	s.Paste("a\x1b[6;6Rb\x07c\x00d\u202ee")
	s.See(`a\x1b[6;6Rb\x07c\x00d\u202ee`)
	s.Type("\x1e!" + enter)
	s.Await("the echo", func(text string) bool {
		return strings.HasSuffix(text, "\n"+`a\x1b[6;6Rb\x07c\x00d\u202ee!`+"\n\n"+prompt)
	})
	leave(t, s)
}

// TestDaemonDies in the middle of an answer: it is said, and the next message
// finds a new one.
func TestDaemonDies(t *testing.T) {
	w := scripted(t, []string{
		`{"block":"hang"}`, `{"type":"delta","text":"I beg"}`, `{"fault":"hang"}`,
		`{"block":"again"}`, `{"answer":{"text":"Here I am."}}`,
	})
	s := start(w, 80, 24)
	s.Type("hello" + enter)
	s.See("writing")
	pid, err := strconv.Atoi(strings.TrimSpace(w.Read(w.Root + "/agent/m.d/pid")))
	if err != nil {
		t.Fatal(err)
	}
	s.Type("half")
	s.See("half")
	unix.Kill(pid, unix.SIGKILL)
	s.See("interrupted: ")
	s.Last(prompt + " half")
	s.Type(" a word" + enter)
	s.See("Here I am.")
	s.Last(prompt)
	leave(t, s)
	if out := w.MustCtx("agent", "history", "m"); !strings.Contains(out, "interrupted") || !strings.Contains(out, "half a word") {
		t.Error(out)
	}
}

// TestTwoChats on one session take turns.
func TestTwoChats(t *testing.T) {
	w := scripted(t, []string{
		`{"block":"call"}`,
		`{"answer":{"calls":[{"name":"tsh","arguments":{"args":["shell.exec","cat gate"]}}]}}`,
		`{"block":"one"}`, `{"answer":{"text":"first"}}`,
		`{"block":"two"}`, `{"answer":{"text":"second"}}`,
	}, "shell.exec")
	open := gate(w, "gate")
	a, b := start(w, 80, 24), start(w, 80, 24)
	a.Type("one" + enter)
	a.See("shell.exec cat gate")
	b.Type("two" + enter)
	b.See("queued: 1 before this one")
	open()
	a.See("first")
	a.Last(prompt)
	b.See("second")
	b.Last(prompt)
	if strings.Contains(b.Text(), "first") {
		t.Error("the second chat shows the first one's run")
	}
	leave(t, a)
	leave(t, b)
}

// TestEndings: every way to end gives the terminal back.
func TestEndings(t *testing.T) {
	w := scripted(t, []string{`{"block":"hang","repeat":true}`, `{"fault":"hang"}`})
	for _, c := range []struct {
		name string
		end  func(*screen.Screen)
		code int
	}{
		{"Ctrl+C", func(s *screen.Screen) { s.Type(ctrlC) }, 0},
		{"Ctrl+C behind words", func(s *screen.Screen) { s.Type("words" + ctrlC) }, 0},
		{"Ctrl+D", func(s *screen.Screen) { s.Type(ctrlD) }, 0},
		{"SIGINT", func(s *screen.Screen) { s.Signal(unix.SIGINT) }, 0},
		{"SIGTERM", func(s *screen.Screen) { s.Signal(unix.SIGTERM) }, 130},
		{"SIGHUP", func(s *screen.Screen) { s.Signal(unix.SIGHUP) }, 130},
		{"/quit while a run is active", func(s *screen.Screen) {
			s.Type("go" + enter)
			s.See("thinking")
			s.Type("/quit" + enter)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(w, 80, 24)
			c.end(s)
			over(t, s, c.code)
			s.Wrote("\x1b[?2004l") // pastes are not bracketed any more
		})
	}
	w.MustCtx("agent", "cancel", "m")
}

// TestSuspend stops the chat as a shell's job, and goes on.
func TestSuspend(t *testing.T) {
	w := modelled(t, "debug/echo")
	cmd := w.Command("bash", "--norc", "-i")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "--norc", "--noprofile", "-i"}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "PS1=shell> ")
	s := screen.Start(t, cmd, 80, 24)
	s.Last("shell>")
	s.Type(w.Bin + "/ctx agent chat m" + enter)
	s.Last(prompt)
	for _, how := range []string{"\x1a", "signal"} {
		s.Type("half")
		s.Last(prompt + " half")
		if how == "signal" {
			pid := child(t, s)
			unix.Kill(pid, unix.SIGTSTP)
		} else {
			s.Type(how)
		}
		s.Last("shell>")
		s.Type("echo in the $((40+2))" + enter)
		s.See("in the 42")
		s.Type("fg" + enter)
		s.Last(prompt + " half")
		s.Type(" way" + enter)
		s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "half way\n\n"+prompt) })
	}
	s.Type(ctrlD)
	s.Last("shell>")
	if !s.Cooked() {
		// bash edits lines itself; ask it for what it gives to programs
		s.Type("stty -a | grep -c ' icanon'" + enter)
		s.See("\n1\n")
	}
	s.Type("exit" + enter)
	s.Exit()
}

// child is the one child of the program.
func child(t *testing.T, s *screen.Screen) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.PID(), s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(b))[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestEditor: Ctrl+G and /edit open the person's editor on the message.
func TestEditor(t *testing.T) {
	w := modelled(t, "debug/echo")
	w.Write(w.Dir+"/ed", "#!/bin/sh\nprintf ' and more\\nof it' >>\"$1\"\n")
	if err := os.Chmod(w.Dir+"/ed", 0o755); err != nil {
		t.Fatal(err)
	}
	s := start(w, 80, 24, "EDITOR="+w.Dir+"/ed")
	s.Type("some\x07")
	s.See("of it")
	s.Type("!" + enter)
	s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "\nsome and more\nof it!\n\n"+prompt) })
	s.Type("/edit other" + enter)
	s.See("other and more")
	s.Type(enter)
	s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "\nother and more\nof it\n\n"+prompt) })
	leave(t, s)
	// The history is of this user alone, and there the next time.
	file := w.Home + "/.local/state/cortexfs/history/m"
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
	s = start(w, 80, 24)
	s.Type("\x1b[A\x1b[A\x1b[A" + enter)
	s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "\nsome and more\nof it!\n\n"+prompt) })
	leave(t, s)
}

// TestCompletion of commands and of names of files.
func TestCompletion(t *testing.T) {
	w := modelled(t, "debug/echo")
	w.Mkdir(w.Workspace+"/src", 0o755)
	w.Write(w.Workspace+"/src/main.go", "")
	s := start(w, 80, 24)
	s.Type("/hel\t")
	s.Await("/help", func(text string) bool { return strings.HasSuffix(strings.TrimRight(text, " "), prompt+" /help") })
	s.Type("\x15look at REA\t")
	s.See("look at README.md")
	s.Type("\x15look at src/m\t")
	s.See("look at src/main.go")
	s.Type(enter)
	s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "look at src/main.go\n\n"+prompt) })
	leave(t, s)
}

var style = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// TestPoorTerminals: without colour, narrow, or unable to move its cursor.
func TestPoorTerminals(t *testing.T) {
	w := modelled(t, "debug/tools", "fs.read")
	s := start(w, 40, 12, "NO_COLOR=1")
	s.Type("run: fs.read README.md and some more words than fit" + enter)
	s.See("tool 1 fs.read")
	s.Last(prompt)
	if styles := style.FindAllString(s.Raw(), -1); slices.ContainsFunc(styles, func(s string) bool { return s != "\x1b[0m" && s != "\x1b[49m" }) {
		t.Errorf("styles %q", styles)
	}
	leave(t, s)

	s = start(w, 80, 24, "TERM=dumb")
	s.Type("run: fs.read README.md\n")
	s.See("three")
	s.Last(prompt)
	s.Type("first \\\nsecond\n")
	s.See("There was nothing to run.")
	s.Type(ctrlD)
	over(t, s, 0)
	if strings.Contains(s.Raw(), "\x1b") {
		t.Errorf("escapes: %q", s.Raw())
	}
}
