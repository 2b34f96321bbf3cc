package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/discover"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world makes places of an ordinary user: etc, home and work in a directory.
func world(t *testing.T) (discover.Places, string) {
	t.Helper()
	dir := t.TempDir()
	p := discover.Places{ID: asuser.Self(), Global: filepath.Join(dir, "etc"), Home: filepath.Join(dir, "home"), Cwd: "/workspace/a/b"}
	if os.Geteuid() == 0 {
		p.ID = asuser.Identity{UID: 60001, GID: 60001}
		for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
	}
	for _, d := range []string{"etc", "home", "work/a/b"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(dir, "work"), &st))
	p.Workspace = sandbox.Workspace{Dir: filepath.Join(dir, "work"), Dev: uint64(st.Dev), Ino: st.Ino}
	return p, dir
}

func put(t *testing.T, dir, rel, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, rel), []byte(text), 0o644))
}

func TestDiscover(t *testing.T) {
	p, dir := world(t)
	put(t, dir, "etc/AGENTS.md", "of the machine\n")
	put(t, dir, "home/AGENTS.md", "of the agent\n\n\n")
	put(t, dir, "work/AGENTS.md", "top {{agent}}")
	put(t, dir, "work/a/AGENTS.md", " \n")
	put(t, dir, "work/a/b/AGENTS.md", "near\r\n\xff")
	put(t, dir, "AGENTS.md", "above the workspace")
	r, warnings := Discover(p)
	const want = `### /etc/cortexfs/AGENTS.md

of the machine

### /home/agent/AGENTS.md

of the agent

### /workspace/AGENTS.md

top {{agent}}

### /workspace/a/b/AGENTS.md

near` + "\r\n\uFFFD\n"
	if got := r.Text(libctx.MaxRuleText); got != want || warnings != nil {
		t.Errorf("%q, %v", got, warnings)
	}
	if r, warnings = Discover(discover.Places{ID: p.ID}); r.Text(1000) != "" || warnings != nil {
		t.Errorf("%v, %v", r, warnings)
	}
}

func TestDiscoverHostile(t *testing.T) {
	p, dir := world(t)
	put(t, dir, "secret", "secret")
	put(t, dir, "etc/AGENTS.md", "one file")
	must(t, os.Link(filepath.Join(dir, "etc/AGENTS.md"), filepath.Join(dir, "home/AGENTS.md"))) // the same file
	must(t, os.Symlink(filepath.Join(dir, "secret"), filepath.Join(dir, "work/AGENTS.md")))
	must(t, unix.Mkfifo(filepath.Join(dir, "work/a/AGENTS.md"), 0o644))
	put(t, dir, "work/a/b/AGENTS.md", "secret")
	must(t, os.Chmod(filepath.Join(dir, "work/a/b/AGENTS.md"), 0))
	r, warnings := Discover(p)
	if len(r) != 1 || r[0].Text != "one file" || len(warnings) != 3 {
		t.Errorf("%v, %v", r, warnings)
	}
	put(t, dir, "work/a/b/c", strings.Repeat("é", libctx.MaxRuleFile))
	must(t, os.Rename(filepath.Join(dir, "work/a/b/c"), filepath.Join(dir, "work/a/b/AGENTS.md")))
	r, warnings = Discover(p)
	if len(r) != 2 || len(r[1].Text) > libctx.MaxRuleFile+80 || !strings.HasSuffix(r[1].Text, "longer than 65536 bytes.)") || len(warnings) != 3 {
		t.Errorf("%d files, %v", len(r), warnings)
	}
}

// A workspace crowds out neither the machine's rules nor the agent's, and of
// its own files the nearest stays.
func TestTextTooLong(t *testing.T) {
	long := strings.Repeat("line\n", 10_000)
	r := Rules{{Path: "/etc/cortexfs/AGENTS.md", Text: "of the machine"}, {Path: "/home/agent/AGENTS.md", Text: "of the agent"}}
	for _, dir := range []string{"", "/a", "/a/b"} {
		r = append(r, File{Path: "/workspace" + dir + "/AGENTS.md", Text: dir + long, Project: true})
	}
	got := r.Text(libctx.MaxRuleText)
	for _, want := range []string{"of the machine\n", "of the agent\n", "/workspace/a/b/AGENTS.md\n\n" + "/a/b" + long, "/workspace/a/AGENTS.md", cutNote, "(1 more files"} {
		if !strings.Contains(got, want) {
			t.Errorf("%.60q is missing", want)
		}
	}
	if n := utf8.RuneCountInString(got); n > libctx.MaxRuleText {
		t.Errorf("%d characters", n)
	}
}

func TestTextIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rules
		for range rapid.IntRange(0, 6).Draw(t, "files") {
			r = append(r, File{
				Path:    rapid.StringMatching(`/[a-zé]{1,40}/AGENTS.md`).Draw(t, "path"),
				Text:    strings.Repeat(rapid.SampledFrom([]string{"é", "ab\n", "語"}).Draw(t, "of"), rapid.IntRange(1, 900).Draw(t, "times")),
				Project: rapid.Bool().Draw(t, "project"),
			})
		}
		whole := utf8.RuneCountInString(r.Text(1 << 30))
		max := rapid.IntRange(0, 4000).Draw(t, "max")
		got := r.Text(max)
		if n := utf8.RuneCountInString(got); n > max || whole <= max && n != whole || !utf8.ValidString(got) {
			t.Fatalf("%d characters of %d, %d are allowed", n, whole, max)
		}
	})
}
