// Package pictures records what the README shows: the real programs at work on a
// terminal, with models that are built in, drawn as docs/pictures/*.svg. As a test
// it compares; `make pictures` draws anew.
package pictures

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/screen"
	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) { world.Main(m) }

const (
	shell  = "$" // its prompt
	prompt = "coder/default ❯"
)

// project is a small program with a defect, and coder is an agent that works on
// it; the model plays these answers.
func project(t *testing.T, answers ...string) *world.World {
	t.Helper()
	w := world.New(t)
	w.Write(w.Workspace+"/README.md", "# orchard\n\nCounts apples.\n")
	w.Write(w.Workspace+"/apples.py", "import sys\n\ncount = {}\nfor colour in sys.argv[2:]:\n    count[colour] = count.get(colour, 0) + 1\nprint(count)\n")
	script := ""
	for _, a := range answers {
		script += `{"block":"answer"}` + "\n" + `{"answer":` + a + "}\n"
	}
	w.Write(w.Dir+"/script.jsonl", script)
	w.Write(w.Root+"/model/debug/script.d/default", "script="+w.Dir+"/script.jsonl\n")
	w.MustCtx("agent", "new", "coder", "--model", "debug/script", "--tool", "bash", "--tool", "fs.read", "--perm", "rwx")
	return w
}

// terminal starts a shell in the project.
func terminal(w *world.World, columns int) *screen.Screen {
	w.T.Helper()
	cmd := w.Command("ctx")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "--norc", "--noprofile", "--noediting"}
	cmd.Env = append(cmd.Env, "PATH="+w.Bin+":/usr/bin:/bin", "TERM=xterm-256color", "LANG=C.UTF-8", "PAGER=cat", `PS1=\[\e[32m\]`+shell+`\[\e[0m\] `)
	s := screen.Start(w.T, cmd, columns, 40)
	s.Last(shell)
	return s
}

// enter types a command and waits for its end.
func enter(s *screen.Screen, command string) {
	s.Type(command + "\r")
	s.Await("the end of "+command, func(text string) bool {
		return strings.Contains(text, shell+" "+command) && strings.HasSuffix(text, "\n"+shell)
	})
}

func TestSend(t *testing.T) {
	w := project(t,
		`{"text":"I look at the program and run it.","calls":[{"name":"tsh","arguments":{"args":["fs.read","apples.py"]}},{"name":"tsh","arguments":{"args":["bash","-c","python3 apples.py red green red"]}}]}`,
		`{"text":"The loop begins with the second argument, so one red apple is missing.\nsys.argv[2:] has to be sys.argv[1:]."}`)
	s := terminal(w, 88)
	enter(s, `ctx agent send coder "Why is the number of red apples wrong?"`)
	enter(s, "ctx agent history coder")
	picture(t, s, "send")
}

func TestChat(t *testing.T) {
	w := project(t,
		`{"calls":[{"name":"tsh","arguments":{"args":["fs.read","apples.py"]}}]}`,
		`{"text":"The loop leaves out the first argument. Two ways to change it:\n\n1. **`+"`sys.argv[1:]`"+`**, the smallest one\n2. `+"`collections.Counter`"+`, which is made for this:\n\n`+"```"+`\nprint(collections.Counter(sys.argv[1:]))\n`+"```"+`"}`,
		`{"calls":[{"name":"tsh","arguments":{"args":["bash","-c","sed -i s/argv.2/argv[1/ apples.py"]}},{"name":"tsh","arguments":{"args":["bash","-c","python3 apples.py red green red"]}}]}`,
		`{"text":"Done: `+"`apples.py`"+` counts *every* apple now."}`)
	s := terminal(w, 88)
	s.Type("ctx agent chat coder\r")
	s.Last(prompt)
	s.Type("Why is one apple missing?\r")
	s.See("argv[1:]))")
	s.Last(prompt)
	s.Type("The first one, please.\r")
	s.See("counts every apple now.")
	s.Last(prompt)
	s.Type("/show 3\r")
	s.See("{'red': 2, 'green': 1}")
	s.Last(prompt)
	picture(t, s, "chat")
}

func TestPolicy(t *testing.T) {
	w := project(t)
	w.MustCtx("agent", "new", "reader", "--model", "debug/script", "--tool", "fs.read")
	s := terminal(w, 128)
	enter(s, "ctx agent tsh reader bash -c 'rm apples.py'")
	enter(s, `ctx policy explain reader bash '{"args":["-c","rm apples.py"]}'`)
	picture(t, s, "policy")
}

var update = flag.Bool("update", false, "draw the pictures anew")

// What is another one in every run, and what the pictures have for it.
var passing = []struct {
	is *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\b\d+ B \d+(\.\d+)? m?s$`), "120 B 9 ms"},
	{regexp.MustCompile(`\b\d+(\.\d+)? m?s\b`), "9 ms"},
	{regexp.MustCompile(`, \d+(\.\d+)?m?s\]$`), ", 9ms]"},
}

// picture compares what is to be seen, but for the last prompt, with the file.
func picture(t *testing.T, s *screen.Screen, name string) {
	t.Helper()
	lines := s.Cells()
	if n := len(lines) - 1; len(lines[n]) <= len([]rune(prompt)) {
		lines = lines[:n]
	}
	for i, line := range lines {
		lines[i] = constant(line)
	}
	drawn := svg(t, lines, s.Columns())
	path := filepath.Join("../../docs/pictures", name+".svg")
	if *update {
		if err := os.WriteFile(path, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != drawn {
		t.Errorf("docs/pictures/%s.svg is not what is to be seen now; make pictures draws it anew. The screen is\n%s", name, s.Text())
	}
}

// constant puts what every run has in the place of what one has.
func constant(line []screen.Cell) []screen.Cell {
	var text strings.Builder
	var of []int // the cell of each byte
	for i, c := range line {
		text.WriteString(c.Text)
		for range len(c.Text) {
			of = append(of, i)
		}
	}
	for _, p := range passing {
		at := p.is.FindStringIndex(text.String())
		if at == nil {
			continue
		}
		from, to := of[at[0]], of[at[1]-1]+1
		out := append([]screen.Cell{}, line[:from]...)
		for _, r := range p.to {
			out = append(out, screen.Cell{Text: string(r), Width: 1, Style: line[from].Style})
		}
		return append(out, line[to:]...)
	}
	return line
}
