// Package chat drives `ctx agent chat` on terminals, with the real programs.
package chat

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { world.Main(m) }

const (
	prompt = "m/default ❯"
	ctrlC  = "\x03"
	ctrlD  = "\x04"
	enter  = "\r"
	alt    = "\x1b\r" // Alt+Enter
)

// modelled makes a world with the agent m on one of the built-in models.
func modelled(t testing.TB, model string, tools ...string) *world.World {
	t.Helper()
	w := world.New(t)
	args := []string{"agent", "new", "m", "--model", model}
	for _, tool := range tools {
		args = append(args, "--tool", tool)
	}
	w.MustCtx(args...)
	return w
}

// scripted is modelled with debug/script and the lines of its script.
func scripted(t testing.TB, lines []string, tools ...string) *world.World {
	t.Helper()
	w := modelled(t, "debug/script", tools...)
	script := w.Dir + "/script.jsonl"
	w.Write(script, strings.Join(lines, "\n")+"\n")
	w.Write(w.Root+"/model/debug/script.d/default", "script="+script+"\n")
	return w
}

// start opens a chat with m on a terminal of that size.
func start(w *world.World, columns, rows int, env ...string) *screen.Screen {
	w.T.Helper()
	cmd := w.Command("ctx", "agent", "chat", "m")
	cmd.Env = append(append(cmd.Env, "TERM=xterm-256color"), env...)
	s := screen.Start(w.T, cmd, columns, rows)
	s.Last(prompt)
	return s
}

// leave ends an idle chat.
func leave(t testing.TB, s *screen.Screen) {
	t.Helper()
	s.Type(ctrlD)
	over(t, s, 0)
}

// over waits for the end of a chat, which leaves the terminal as it was.
func over(t testing.TB, s *screen.Screen, code int) {
	t.Helper()
	if got := s.Exit(); got != code {
		t.Errorf("exit %d, want %d; the screen is\n%s", got, code, s.Text())
	}
	if !s.Cooked() {
		t.Error("the terminal is not as it was")
	}
}

// gate makes a named pipe in the workspace: a tool that reads it waits for open.
func gate(w *world.World, name string) (open func()) {
	w.T.Helper()
	path := w.Workspace + "/" + name
	if err := unix.Mkfifo(path, 0o600); err != nil {
		w.T.Fatal(err)
	}
	return func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			w.T.Error(err)
			return
		}
		f.WriteString("opened\n")
		f.Close()
	}
}

var update = flag.Bool("update", false, "write what is seen as what is wanted")

// What differs from run to run.
var varying = []struct {
	is *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d+(\.\d+)? (ms|s)\b`), "N ms"},
	{regexp.MustCompile(`\b\d+ B\b`), "N B"},
	{regexp.MustCompile(`sha256 [0-9a-f]{64}`), "sha256 …"},
	{regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`), "RUN"},
}

// golden compares what is to be seen with a file.
func golden(t *testing.T, s *screen.Screen, name string) {
	t.Helper()
	got := s.Text() + "\n"
	for _, v := range varying {
		got = v.is.ReplaceAllString(got, v.to)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: the screen is\n%s\nwant\n%s", name, got, want)
	}
}
