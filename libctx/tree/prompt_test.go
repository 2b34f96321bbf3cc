package tree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
)

func TestSetPrompt(t *testing.T) {
	l := newTree(t)
	if err := NewAgent(l, AgentSpec{Name: "coder", Exec: script(t), Owner: asuser.Self()}); err != nil {
		t.Fatal(err)
	}
	dir := l.Control("coder")
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"system.md", "prompt.template.md"} {
		for _, text := range []string{"Be kind.", "", strings.Repeat("ä", libctx.MaxCapContent/2)} {
			if err := SetPrompt(l, "coder", file, text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if b, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(b) != text {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
	}
	for name, c := range map[string]struct {
		agent      libctx.Agent
		file, text string
		kind       errdefs.Kind
	}{
		"another control": {"coder", "policy", "allow coder_t tool:bash execute\n", errdefs.Invalid},
		"a path":          {"coder", "../coder.d/system.md", "x", errdefs.Invalid},
		"too long":        {"coder", "system.md", strings.Repeat("x", libctx.MaxCapContent+1), errdefs.Invalid},
		"NUL":             {"coder", "system.md", "a\x00b", errdefs.Invalid},
		"not UTF-8":       {"coder", "system.md", "a\xffb", errdefs.Invalid},
		"nobody":          {"none", "system.md", "x", errdefs.NotFound},
	} {
		if err := SetPrompt(l, c.agent, c.file, c.text); !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before)+2 {
		t.Errorf("%v, %v", after, err)
	}

	// Links are never followed, whichever part is one.
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Mkdir(victim, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.WriteFile(victim+"/system.md", []byte("keep"), 0o600), os.Remove(dir + "/system.md"), os.Symlink(victim+"/system.md", dir+"/system.md"),
		os.Symlink(victim, l.Control("linked")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []libctx.Agent{"coder", "linked"} {
		if err := SetPrompt(l, name, "system.md", "x"); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, _ := os.ReadFile(victim + "/system.md"); string(b) != "keep" {
		t.Errorf("the target of a link is %q", b)
	}
}

// TestSetPromptForAUser: root changes what is a user's with the user's rights.
func TestSetPromptForAUser(t *testing.T) {
	l := newTree(t)
	owner := asuser.Self()
	if owner.UID == 0 {
		owner = asuser.Identity{UID: 60001, GID: 60001}
	}
	if err := NewAgent(l, AgentSpec{Name: "coder", Exec: script(t), Owner: owner}); err != nil {
		t.Fatal(err)
	}
	for _, dirOwner := range []uint32{owner.UID, asuser.Self().UID} {
		if err := os.Chown(l.Control("coder"), int(dirOwner), -1); err != nil {
			t.Fatal(err)
		}
		// What is outside can not be searched by the user, as homes often can not.
		err := SetPrompt(l, "coder", "system.md", "Be kind.\n")
		st, serr := os.Stat(l.Control("coder") + "/system.md")
		if err != nil || serr != nil {
			t.Fatalf("%v, %v", err, serr)
		}
		if got := uidOf(st); got != dirOwner {
			t.Errorf("in a directory of uid %d the file is uid %d's", dirOwner, got)
		}
	}
}

func uidOf(st os.FileInfo) uint32 { return st.Sys().(*syscall.Stat_t).Uid }
