package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/admit"
	"cortexfs.org/tests/internal/world"
)

// denial is a code with what would allow the call, how to get it, and how to ask.
type denial struct{ code, want, command, explain string }

// denials reads the last section of docs/reference/admission.md: how the agents are
// made, and what is refused.
func denials(t *testing.T) (setup string, all []denial) {
	page, err := os.ReadFile("../../docs/reference/admission.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Each code once\n")
	blocks := strings.Split(section, "```\n")
	if len(blocks) != 5 {
		t.Fatalf("the section has %d parts", len(blocks))
	}
	lines := strings.Split(strings.TrimSpace(blocks[3]), "\n")
	for i := 0; i+2 < len(lines); i += 3 {
		head, ok := strings.CutPrefix(lines[i], "# ")
		code, want, found := strings.Cut(head, ": ")
		if !ok || !found {
			t.Fatalf("%q names no code", lines[i])
		}
		all = append(all, denial{code, want, lines[i+1], lines[i+2]})
	}
	return blocks[1], all
}

// TestEveryDenial does what docs/reference/admission.md says of each code, and sees
// that the command is refused with it and that the explanation names what it says.
func TestEveryDenial(t *testing.T) {
	setup, all := denials(t)
	for _, code := range admit.Codes() {
		n := 0
		for _, d := range all {
			if d.code == string(code) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the page has %d command lines for %s", n, code)
		}
	}
	w := world.Empty(t)
	w.Write(w.Workspace+"/README.md", "hello\n")
	var script strings.Builder
	fmt.Fprintf(&script, "set -e\n(%s)\n", strings.ReplaceAll(strings.TrimSpace(setup), "\n", "\n"))
	script.WriteString("set +e\nfor d in tool agent/a.d agent/m.d home/$(id -u)/tool; do mkdir -p $KEEP/$d && cp -a $CTX_ROOT/$d/. $KEEP/$d; done\n")
	for i, d := range all {
		fmt.Fprintf(&script, "echo '#' %d; { %s ; } 2>&1\necho '# explained'; %s 2>&1\n", i, d.command, d.explain)
		script.WriteString("for d in tool agent/a.d agent/m.d home/$(id -u)/tool; do rm -rf $CTX_ROOT/$d/* && cp -a $KEEP/$d/. $CTX_ROOT/$d; done\n")
	}
	file := filepath.Join(w.Dir, "denials.sh")
	w.Write(file, script.String())
	cmd := exec.Command("/bin/sh", file)
	cmd.Dir = w.Workspace
	cmd.Env = []string{
		"HOME=" + w.Home, "XDG_RUNTIME_DIR=" + w.Runtime, "CTX_ROOT=" + w.Root, "KEEP=" + filepath.Join(w.Dir, "keep"),
		"PATH=" + w.Bin + ":/usr/bin:/bin", "LANG=C.UTF-8",
	}
	r := w.Run(cmd)
	for i, d := range all {
		_, rest, _ := strings.Cut("\n"+r.Out, fmt.Sprintf("\n# %d\n", i))
		rest, _, _ = strings.Cut(rest, fmt.Sprintf("\n# %d\n", i+1))
		got, explained, found := strings.Cut("\n"+rest, "\n# explained\n")
		if !found || !strings.Contains(got, " refused: ") || !strings.Contains(got, "("+d.code+")") {
			t.Errorf("$ %s\n%s\nis not refused with %s", d.command, got, d.code)
		}
		if !strings.Contains(explained, d.want) {
			t.Errorf("$ %s\n%s\ndoes not name %q", d.explain, explained, d.want)
		}
	}
	if t.Failed() {
		t.Log(r.Err)
	}
}
