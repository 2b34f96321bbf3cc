package chat

import (
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

// paged starts a command on a terminal, with a pager that shows three lines and
// waits for a key.
func paged(w *world.World, env []string, args ...string) *screen.Screen {
	w.T.Helper()
	cmd := w.Command("ctx", args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color", "PAGER=sh "+w.Dir+"/pager"), env...)
	return screen.Start(w.T, cmd, 80, 24)
}

// TestPager: what may be long goes through the pager of a person at a terminal,
// who may leave it whenever he wants.
func TestPager(t *testing.T) {
	w := modelled(t, "debug/echo")
	w.Write(w.Dir+"/pager", "trap '' INT\nhead -n 3\necho \"LESS is $LESS\"\nread -r key </dev/tty\n")
	send := w.Command("ctx", "agent", "send", "m", "-")
	send.Stdin = strings.NewReader("begin\n" + strings.Repeat("a line that nobody reads\n", 4000) + "end\n")
	if r := w.Run(send); r.Code != 0 {
		t.Fatal(r)
	}
	for _, what := range []string{"history", "output", "sessions", "usage"} {
		s := paged(w, nil, "agent", what, "m")
		s.See("LESS is FRX")
		if text := s.Text(); what == "history" && (strings.Contains(text, "end") || !strings.Contains(s.Raw(), "\x1b[1muser:\x1b[0m begin")) {
			t.Errorf("%s", text)
		}
		s.Type(ctrlC + "\r") // Ctrl+C is the pager's
		over(t, s, 0)
		if text := strings.TrimSuffix(s.Text(), "\n^C"); !strings.HasSuffix(text, "LESS is FRX") {
			t.Errorf("%s: something is behind the pager:\n%s", what, text)
		}
	}
	s := paged(w, []string{"LESS=-S"}, "agent", "usage", "m")
	s.See("LESS is -S")
	s.Type("\r")
	over(t, s, 0)
	for _, none := range []string{"PAGER=cat", "PAGER=", "TERM=dumb"} {
		s := paged(w, []string{none}, "agent", "usage", "m")
		s.See("\nsession ")
		over(t, s, 0) // without a key
	}
	s = paged(w, nil, "agent", "usage", "m", "--json")
	s.See(`{"kind":"session"`)
	over(t, s, 0)
	s = paged(w, nil, "agent", "history", "nobody")
	s.See("ctx: agent history: ")
	over(t, s, 1)
}
