package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// step is a command of a guide and what the guide says it prints.
type step struct{ command, out string }

// steps are the commands of a page: lines that begin with "$ " in its fenced
// blocks. The lines behind one are its output.
func steps(page string) []step {
	var all []step
	fenced := false
	for line := range strings.Lines(page) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
			all = append(all, step{}) // what follows belongs to no command
		case fenced && isCommand:
			all = append(all, step{command: strings.TrimSpace(command)})
		case fenced && len(all) > 0:
			all[len(all)-1].out += line
		}
	}
	return all
}

// TestToolsGuide does what docs/tools-of-your-own.md says, in one shell, and
// sees what it says. Refusals are what the page calls refusals.
func TestToolsGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools-of-your-own.md")
	if err != nil {
		t.Fatal(err)
	}
	w := world.Empty(t)
	for _, path := range []string{
		"linecount.py", "tool/todo", "tool/todo.d/description", "tool/todo.d/effect", "tool/todo.d/mode", "tool/todo.d/schema",
		"tool/wordcount", "tool/wordcount.d/description", "tool/wordcount.d/effect", "tool/wordcount.d/mode",
		"tool/wordcount.d/replay", "tool/wordcount.d/parallel",
	} {
		copyFile(t, filepath.Join("../../libctx/sdk/example", path), filepath.Join(w.Workspace, "libctx/sdk/example", path))
	}
	var all []step
	var script strings.Builder
	for _, s := range steps(string(page)) {
		if s.command != "" {
			fmt.Fprintf(&script, "echo '#' %d\n%s\necho '#' code $?\n", len(all), s.command)
			all = append(all, s)
		}
	}
	if len(all) < 20 {
		t.Fatalf("the guide has %d commands", len(all))
	}
	file := filepath.Join(w.Dir, "guide.sh")
	w.Write(file, script.String())
	cmd := exec.Command("/bin/sh", file)
	cmd.Dir = w.Workspace
	cmd.Env = []string{"HOME=" + w.Home, "XDG_RUNTIME_DIR=" + w.Runtime, "CTX_ROOT=" + w.Root, "PATH=" + w.Bin + ":/usr/bin:/bin", "LANG=C.UTF-8"}
	r := w.Run(cmd)
	for i, s := range all {
		_, rest, _ := strings.Cut("\n"+r.Out, fmt.Sprintf("\n# %d\n", i))
		got, rest, found := strings.Cut(rest, "# code ")
		code, _, _ := strings.Cut(rest, "\n")
		told := strings.Contains(s.out, " … refused: ") // which is activity, on standard error
		refused := strings.HasPrefix(s.command, "ctx policy explain") || told
		if !found || (code != "0") != refused {
			t.Errorf("$ %s\n%s(code %s)", s.command, got, code)
		}
		if told {
			if !strings.Contains(r.Err, s.out) {
				t.Errorf("$ %s\ndoes not print\n%s", s.command, s.out)
			}
			continue
		}
		if s.out != "" && strings.TrimRight(got, "\n") != strings.TrimRight(s.out, "\n") {
			t.Errorf("$ %s\n%s\nand the guide says\n%s", s.command, got, s.out)
		}
	}
	if t.Failed() {
		t.Log(r.Err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, st.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}
