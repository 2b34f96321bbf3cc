package workspace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	// Started again below a mount namespace of its own: resolve DIR PROTECTED.
	if len(os.Args) == 4 && os.Args[1] == "resolve" {
		_, err := Resolve(os.Args[2], asuser.Self(), []string{os.Args[3]}, Protect{})
		fmt.Printf("%s %v\n", errdefs.KindOf(err), err)
		return
	}
	os.Exit(m.Run())
}

// tree makes directories (names that end in "/"), links ("a -> b") and files
// below a canonical directory that everybody may enter.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "workspace-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		at, to, link := strings.Cut(e, " -> ")
		path := filepath.Join(dir, at)
		parent := filepath.Dir(path)
		if strings.HasSuffix(e, "/") {
			parent = path
		}
		if err = os.MkdirAll(parent, 0o755); err != nil {
			t.Fatal(err)
		}
		switch {
		case link:
			err = os.Symlink(to, path)
		case !strings.HasSuffix(e, "/"):
			err = os.WriteFile(path, []byte("x"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestResolve(t *testing.T) {
	dir := tree(t, "ws/.git/config", "ws/.hg/", "ws/.vscode/settings.json", "ws/Makefile", "ws/sub/deep", "link -> ws", "again -> link")
	for _, in := range []string{"ws", "link", "again", "ws/sub/..", "ws/", "./ws"} {
		w, err := Resolve(dir+"/"+in, asuser.Self(), []string{dir + "/other"}, Protect{Lines: []string{".vscode/settings.json", "Makefile", "missing/x", ".git/hooks", ".vscode"}})
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if w.Dir != dir+"/ws" || w.Ino == 0 || w.Dev == 0 || len(w.Links) != 0 {
			t.Errorf("%s: %+v", in, w)
		}
		var shown []string
		for _, b := range w.ReadOnly {
			if b.Ino == 0 {
				t.Errorf("%+v", b)
			}
			shown = append(shown, strings.TrimPrefix(b.Source, dir)+" "+b.Target)
		}
		want := []string{"/ws/.git /workspace/.git", "/ws/.hg /workspace/.hg", "/ws/.vscode /workspace/.vscode", "/ws/Makefile /workspace/Makefile"}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := tree(t, "file", "loop -> loop", "dangling -> none", "a/.hg -> ../b", "b/", "c/Makefile -> /etc/passwd", "root/ws/")
	for _, c := range []struct {
		dir     string
		protect []string
		kind    errdefs.Kind
		text    string
	}{
		{"", nil, errdefs.Invalid, "absolute"},
		{"relative", nil, errdefs.Invalid, "absolute"},
		{dir + "/a\x00b", nil, errdefs.Invalid, "absolute"},
		{dir + "/none", nil, errdefs.NotFound, "none"},
		{dir + "/file", nil, errdefs.Invalid, "not a directory"},
		{dir + "/file/x", nil, errdefs.NotFound, "file"},
		{dir + "/loop", nil, errdefs.Invalid, "loop"},
		{dir + "/dangling", nil, errdefs.NotFound, "dangling"},
		{dir + "/a", nil, errdefs.Invalid, ".hg is a symbolic link"},
		{dir + "/c", []string{"Makefile"}, errdefs.Invalid, "Makefile is a symbolic link"},
		{dir + "/c", nil, "", ""},
	} {
		_, err := Resolve(c.dir, asuser.Self(), nil, Protect{Lines: c.protect})
		if errdefs.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: %s %v", c.dir, errdefs.KindOf(err), err)
		}
		if err != nil && c.dir != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", c.dir)) {
			t.Errorf("%q is not named: %v", c.dir, err)
		}
	}
}

func TestProtected(t *testing.T) {
	dir := tree(t, "home/.local/share/cortexfs/home/1/", "home/src/deep/", "run/", "home/in -> .local/share/cortexfs/home", "home/src/up -> ..", "alias -> home")
	guarded := []string{dir + "/alias/.local/share/cortexfs", dir + "/run/not-there/yet", dir + "/run"}
	for in, want := range map[string]bool{
		"home/src": false, "home/src/deep": false, "alias/src": false,
		"home": true, "alias": true, "": true, "home/.local": true, "home/.local/share/cortexfs": true,
		"home/.local/share/cortexfs/home/1": true, "home/in": true, "home/in/1": true, "home/src/up": true, "run": true,
		"alias/src/up/in/1": true,
	} {
		_, err := Resolve(filepath.Join(dir, in), asuser.Self(), guarded, Protect{})
		if errdefs.Is(err, errdefs.Invalid) != want || !want && err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if want && (!strings.Contains(err.Error(), dir+"/") || !strings.Contains(errdefs.HintOf(err), "--workspace")) {
			t.Errorf("%q: %v, hint %q", in, err, errdefs.HintOf(err))
		}
	}
	if _, err := Resolve("/", asuser.Self(), guarded, Protect{}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("/: %v", err)
	}
	// The runtime's own empty workspace lies in the tree: its caller guards
	// nothing.
	if _, err := Resolve(dir+"/home/.local/share/cortexfs/home/1", asuser.Self(), nil, Protect{}); err != nil {
		t.Error(err)
	}
}

func TestProtectedBehindMounts(t *testing.T) {
	dir := tree(t, "tree/home/1/", "data/tree/x/", "user/plain/", "m/")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, source, target string
		ws, guarded          string
		refused              bool
	}{
		{"the tree by another name", "tree", "m", "m", "tree", true},
		{"a part of it by another name", "tree/home", "m", "m", "tree", true},
		{"below a part", "tree/home", "m", "m/1", "tree", true},
		{"what contains it by another name", "data", "m", "m", "data/tree/x", true},
		{"the tree is a mount of a part", "data/tree", "m", "data", "m", true},
		{"and a workspace in it", "data/tree", "m", "data/tree/x", "m", true},
		{"a mount in the workspace", "tree", "user/plain", "user", "user/plain", true},
		{"another directory", "user", "m", "m", "tree", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := exec.Command("/usr/bin/bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc",
				"--bind", dir+"/"+c.source, dir+"/"+c.target, self, "resolve", dir+"/"+c.ws, dir+"/"+c.guarded).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if refused := strings.HasPrefix(string(out), string(errdefs.Invalid)); refused != c.refused {
				t.Errorf("refused %v: %s", refused, out)
			}
		})
	}
}

func TestRightsOfTheAgent(t *testing.T) {
	dir := tree(t, "private/ws/", "open/.git/")
	if err := os.Chmod(dir+"/private", 0o700); err != nil {
		t.Fatal(err)
	}
	id := asuser.Self()
	if id.UID == 0 {
		id = asuser.Identity{UID: 60001, GID: 60001}
	} else if err := os.Chmod(dir+"/private", 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir+"/private", 0o700)
	for _, in := range []string{"private", "private/ws"} {
		if _, err := Resolve(filepath.Join(dir, in), id, nil, Protect{}); !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%s: %v", in, err)
		}
	}
	// What the agent can not see is guarded all the same.
	if w, err := Resolve(dir+"/open", id, []string{dir + "/private/ws"}, Protect{}); err != nil || len(w.ReadOnly) != 1 {
		t.Errorf("%+v %v", w, err)
	}
	if id.UID == 60001 {
		if _, err := Resolve(dir, id, []string{dir + "/private/ws"}, Protect{}); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%v", err)
		}
	}
}

func TestParsePointer(t *testing.T) {
	for in, want := range map[string]string{
		"gitdir: /a/b\n": "/a/b", "gitdir: ../x y": "../x y", "gitdir: a\nb\n": "", "gitdir: \n": "", "gitdir:/a\n": "",
		"": "", "x\ngitdir: /a\n": "", "gitdir: a\x00\n": "",
	} {
		if got, ok := parsePointer(in); got != want || ok != (want != "") {
			t.Errorf("%q: %q %v", in, got, ok)
		}
	}
}

func TestCoreWorktree(t *testing.T) {
	for in, want := range map[string]string{
		"[core]\n\tworktree = ../../../sub\n":                     "../../../sub",
		"[Core]\nWorkTree=/a b # c\n":                             "/a b",
		"[core] worktree = x\n":                                   "x",
		"[core]\nworktree = \"a # b\\\" \\\\\"\n":                 `a # b" \`,
		"[core]\nworktree = a\nworktree = b\n":                    "b",
		"[core \"x\"]\nworktree = a\n":                            "",
		"[other]\nworktree = a\n[core]\nbare = false\n":           "",
		"[core]\nworktree = \"a\n":                                "",
		"[core]\nworktree = a\\q\n":                               "",
		"[core]\nworktree\n":                                      "",
		"# [core]\nworktree = a\n":                                "",
		"[core]\n; worktree = a\n":                                "",
		"[core\nworktree = a\n":                                   "",
		"[remote \"o\"]\nurl = u\n[core]\nworktree = ../../r ; x": "../../r",
	} {
		if got, ok := coreWorktree(in); got != want && ok {
			t.Errorf("%q: %q", in, got)
		} else if ok != (want != "") {
			t.Errorf("%q: %v", in, ok)
		}
	}
}

func FuzzCoreWorktree(f *testing.F) {
	f.Add("[core]\n\tworktree = ../../../sub\n")
	f.Add("[core] worktree = \"a\\\"\" # x\n[x]")
	f.Fuzz(func(t *testing.T, text string) {
		if v, ok := coreWorktree(text); ok && (v == "" || strings.Contains(v, "\x00")) {
			t.Errorf("%q", v)
		}
		parsePointer(text)
	})
}

func FuzzParseMounts(f *testing.F) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`36 35 98:0 /mnt\0401 /mnt2\011x rw,noatime - ext3 /dev/root rw` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for id, m := range parseMounts(text) {
			if !strings.HasPrefix(m.point, "/") || len(m.root) > len(text) {
				t.Errorf("%d: %+v", id, m)
			}
		}
	})
}

func TestParseMounts(t *testing.T) {
	got := parseMounts([]byte("36 35 98:0 /mnt\\0401\\134 /mnt2\\011x rw - ext3 r rw\nshort\nx 35 98:0 / / rw -\n"))
	want := mounted{"98:0", `/mnt 1\`, "/mnt2\tx"}
	if len(got) != 1 || got[36] != want {
		t.Errorf("%+v", got)
	}
}
