package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// kept are the entries of a workspace that are shown read-only, sorted.
func kept(t *testing.T, dir string, p Protect) []string {
	t.Helper()
	w, err := Resolve(dir, asuser.Self(), nil, p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range w.ReadOnly {
		if b.Ino == 0 || strings.TrimPrefix(b.Target, "/workspace/") != strings.TrimPrefix(b.Source, dir+"/") {
			t.Errorf("%+v", b)
		}
		names = append(names, strings.TrimPrefix(b.Source, dir+"/"))
	}
	slices.Sort(names)
	return names
}

func TestUsual(t *testing.T) {
	dir := tree(t, ".git/config", ".envrc", ".vscode/tasks.json", ".husky/pre-commit", ".claude/settings.json", "sub/.envrc", "Makefile", "AGENTS.md")
	for _, c := range []struct {
		p    Protect
		want []string
	}{
		{Protect{Usual: true}, []string{".claude", ".envrc", ".git", ".husky", ".vscode"}},
		{Protect{}, []string{".git"}},
		{Protect{Lines: []string{"Makefile"}}, []string{".git", "Makefile"}},
		{Protect{Lines: []string{"Makefile", ".envrc"}, Usual: true}, []string{".claude", ".envrc", ".git", ".husky", ".vscode", "Makefile"}},
	} {
		if diff := cmp.Diff(c.want, kept(t, dir, c.p)); diff != "" {
			t.Errorf("%+v: %s", c.p, diff)
		}
	}
}

// A directory that is very long, or may be entered and not read, hides nothing.
func TestUsualUnread(t *testing.T) {
	dir := tree(t, ".envrc", ".Git/x")
	want := []string{".envrc"}
	if diff := cmp.Diff(want, kept(t, dir, Protect{Usual: true})); diff != "" {
		t.Error(diff)
	}
	for i := range 6000 {
		if err := os.WriteFile(fmt.Sprintf("%s/a-file-with-a-long-name-%d", dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, kept(t, dir, Protect{Usual: true})); diff != "" {
		t.Error(diff)
	}
	if err := os.Chmod(dir, 0o311); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	id := asuser.Self()
	if id.UID == 0 {
		id = asuser.Identity{UID: 60001, GID: 60001}
	}
	if w, err := Resolve(dir, id, nil, Protect{Usual: true}); err != nil || len(w.ReadOnly) != 1 {
		t.Errorf("%+v %v", w, err)
	}
}

// What the usual list names is read-only where a link leads to it, too, however it
// leads there, as long as it is in the workspace.
func TestUsualLinks(t *testing.T) {
	dir := tree(t, "tools/vscode/tasks.json", "conf/env -> ../last/env", "last/env", "x/y/z", "outside -> /etc", "claude.d/a",
		".vscode -> tools/vscode", ".envrc -> conf/env", ".idea -> x/../x/y", ".zed -> nowhere", ".husky -> .husky", ".config -> .", ".local -> ..",
		".cargo -> outside/ssl", ".codex -> .claude", ".claude -> claude.d", "free/f")
	if err := os.Symlink(dir+"/abs/helix", filepath.Join(dir, ".helix")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir+"/abs/helix", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, ".netrc"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"abs", "claude.d", "conf", "last", "tools", "x"}
	if diff := cmp.Diff(want, kept(t, dir, Protect{Usual: true})); diff != "" {
		t.Error(diff)
	}
	if got := kept(t, dir, Protect{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A line of the control must be kept, and what it is reached through.
func TestLinesThroughLinks(t *testing.T) {
	dir := tree(t, "a/b -> ../c/d", "c/d/e", "f/g -> ../h", "h -> i", "i/", "k/l -> ../../elsewhere", "m/n -> ../m/n")
	for line, want := range map[string]string{
		"a/b/e": "a c", "a/b": "a c", "a": "a", "c/d": "c", "a/none": "a", "none/x": "", "k/l/x": "k", "m/n": "m", "c//d/./e": "c",
	} {
		if got := strings.Join(kept(t, dir, Protect{Lines: []string{line}}), " "); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
	for _, line := range []string{"h", "f/g", "h/x"} {
		if _, err := Resolve(dir, asuser.Self(), nil, Protect{Lines: []string{line}}); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "h is a symbolic link") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestSensitive(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".GIT": true, ".envrc": true, ".vscode": true, "AGENTS.md": true, "agents.md": true, "x.code-workspace": true,
		".desktop": false, "a.desktop": true, "Makefile": false, "git": false, "": false, ".": false, "main.go": false, ".env": false, ".gitignore": false,
	} {
		if Sensitive(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	seen := map[string]bool{}
	for _, name := range Usual() {
		if seen[name] || strings.Contains(name, "/") || !Sensitive(name) {
			t.Errorf("%q: twice, or no entry", name)
		}
		seen[name] = true
	}
}

// BenchmarkResolve is what each call of a tool pays, with the list and without.
func BenchmarkResolve(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{".git", ".vscode", ".github", "src"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for name, p := range map[string]Protect{"usual": {Usual: true}, "none": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Resolve(dir, asuser.Self(), nil, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestBare: a workspace that is a repository itself has its hooks and its
// configuration at the top.
func TestBare(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"bare":     {[]string{"HEAD", "objects/", "refs/", "config", "hooks/", "src/"}, "HEAD objects refs config hooks"},
		"not bare": {[]string{"HEAD", "objects/", "config", "hooks/"}, ""},
	} {
		w, err := Resolve(tree(t, c.files...), asuser.Self(), nil, Protect{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range w.ReadOnly {
			got = append(got, filepath.Base(b.Target))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
