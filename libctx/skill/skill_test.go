package skill

import (
	"fmt"
	"os"
	"path"
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
	p := discover.Places{ID: asuser.Self(), Global: filepath.Join(dir, "etc"), Home: filepath.Join(dir, "home"), Cwd: "/workspace/a"}
	if os.Geteuid() == 0 {
		p.ID = asuser.Identity{UID: 60001, GID: 60001}
		for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
	}
	for _, d := range []string{"etc", "home", "work/a"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(dir, "work"), &st))
	p.Workspace = sandbox.Workspace{Dir: filepath.Join(dir, "work"), Dev: uint64(st.Dev), Ino: st.Ino}
	return p, dir
}

func put(t *testing.T, dir, rel, text string) {
	t.Helper()
	file := filepath.Join(dir, rel)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func about(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n" + strings.Repeat("body\n", 10_000)
}

func TestDiscover(t *testing.T) {
	p, dir := world(t)
	put(t, dir, "etc/skills/deploy/SKILL.md", about("deploy", "Deploys."))
	put(t, dir, "etc/.agents/skills/no/SKILL.md", about("no", "Not a place."))
	put(t, dir, "home/.codex/skills/own/SKILL.md", about("own", "Mine."))
	put(t, dir, "work/.agents/skills/top/SKILL.md", about("top", "At the top."))
	put(t, dir, "work/.agents/skills/top/inner/SKILL.md", about("inner", "Below a skill."))
	put(t, dir, "work/.agents/skills/.hidden/SKILL.md", about("hidden", "Hidden."))
	put(t, dir, "work/.agents/skills/SKILL.md", about("loose", "In no directory of its own."))
	put(t, dir, "work/.agents/skills/README.md", "text")
	put(t, dir, "work/a/.agents/skills/group/x y/SKILL.md", "---\ndescription: Without a name.\n---")
	put(t, dir, "work/a/.codex/skills/bare/SKILL.md", "---\n---\n")
	found, warnings := Discover(p)
	const want = `- deploy: Deploys. (/etc/cortexfs/skills/deploy/SKILL.md)
- own: Mine. (/home/agent/.codex/skills/own/SKILL.md)
- x y: Without a name. (/workspace/a/.agents/skills/group/x y/SKILL.md)
- bare (/workspace/a/.codex/skills/bare/SKILL.md)
- top: At the top. (/workspace/.agents/skills/top/SKILL.md)
`
	if got := Text(found, libctx.MaxSkillText); got != want || warnings != nil {
		t.Errorf("%s\n%v", got, warnings)
	}
}

func TestDiscoverHostile(t *testing.T) {
	p, dir := world(t)
	const at = "work/.agents/skills/"
	put(t, dir, at+"good/SKILL.md", about("good", strings.Repeat("é", 3000)))
	put(t, dir, at+"plain/SKILL.md", "no front matter")
	put(t, dir, at+"open/SKILL.md", "---\nname: x\n"+strings.Repeat("k: v\n", 10_000)+"---\n")
	put(t, dir, at+"shut/SKILL.md", about("shut", "x"))
	must(t, os.Chmod(filepath.Join(dir, at, "shut/SKILL.md"), 0))
	must(t, os.Mkdir(filepath.Join(dir, at, "closed"), 0))
	put(t, dir, at+"new\nline/SKILL.md", about("a", "b"))
	put(t, dir, at+"bad\xff/SKILL.md", about("a", "b"))
	must(t, os.MkdirAll(filepath.Join(dir, at, "dir/SKILL.md"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, at, "fifo"), 0o755))
	must(t, unix.Mkfifo(filepath.Join(dir, at, "fifo/SKILL.md"), 0o644))
	must(t, unix.Mkfifo(filepath.Join(dir, at, "pipe"), 0o644))
	must(t, os.Symlink(filepath.Join(dir, at, "good"), filepath.Join(dir, at, "link")))
	must(t, os.Mkdir(filepath.Join(dir, at, "inlink"), 0o755))
	must(t, os.Symlink("../good/SKILL.md", filepath.Join(dir, at, "inlink/SKILL.md")))
	must(t, os.Symlink(filepath.Join(dir, "work/.agents"), filepath.Join(dir, "work/a/.agents")))
	put(t, dir, at+strings.Repeat("d/", libctx.MaxSkillDepth-1)+"e/SKILL.md", about("deep", "x"))
	put(t, dir, at+strings.Repeat("d/", libctx.MaxSkillDepth)+"e/SKILL.md", about("deeper", "x"))
	found, warnings := Discover(p)
	if len(found) != 2 || found[0].Name != "deep" || found[1].Name != "good" {
		t.Errorf("%+v", found)
	} else if n := utf8.RuneCountInString(found[1].Description); n != libctx.MaxSkillAbout {
		t.Errorf("a description of %d characters", n)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, strings.ReplaceAll(w.String(), "/workspace/.agents/skills/", ""))
	}
	const want = `/workspace/a/.agents/skills: is a symbolic link, or leads through one
bad\xff/SKILL.md: its path has characters that can not be shown
closed: permission denied
dir/SKILL.md: is not a regular file
fifo/SKILL.md: is not a regular file
inlink/SKILL.md: is a symbolic link, or leads through one
link: is a symbolic link, or leads through one
new\nline/SKILL.md: its path has characters that can not be shown
open/SKILL.md: its front matter does not end within 16384 bytes
plain/SKILL.md: does not begin with front matter
shut/SKILL.md: permission denied`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("%s", s)
	}
}

// What is looked at is bounded for all places together, and a workspace takes
// nothing away from the machine and the agent.
func TestSearchIsBounded(t *testing.T) {
	p, dir := world(t)
	put(t, dir, "etc/skills/first/SKILL.md", about("first", "x"))
	for i := range 20 {
		put(t, dir, fmt.Sprintf("work/a/.agents/skills/s%d/SKILL.md", i), about("s", "x"))
		put(t, dir, fmt.Sprintf("work/.agents/skills/s%d/SKILL.md", i), about("s", "x"))
	}
	for _, c := range []struct {
		files, entries, found int
		why                   string
	}{
		{41, 41, 41, ""},
		{40, 41, 40, "too many of them"},
		{10, 41, 10, "too many of them"},
		{41, 40, 40, "too many directory entries"},
		{41, 11, 11, "too many directory entries"},
		{1, 1, 1, "too many directory entries"},
	} {
		s := search{files: c.files, entries: c.entries}
		warnings := s.in(p)
		if len(s.found) != c.found || s.found[0].Name != "first" {
			t.Errorf("%+v: %d skills", c, len(s.found))
		}
		if c.why == "" && warnings != nil || c.why != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Why, c.why)) {
			t.Errorf("%+v: %v", c, warnings)
		}
	}
}

func TestTextShortens(t *testing.T) {
	var skills []Skill
	for i := range 30 {
		skills = append(skills, Skill{Name: fmt.Sprint("s", i), Description: strings.Repeat("word ", 100), Path: path.Join("/workspace", fmt.Sprint(i))})
	}
	whole := Text(skills[:15], libctx.MaxSkillText)
	if strings.Contains(whole, "…") {
		t.Errorf("15 of 500 characters are shortened: %s", whole)
	}
	short := Text(skills, libctx.MaxSkillText)
	if n := strings.Count(short, "…"); n != 30 || strings.Contains(short, "no room") {
		t.Errorf("%d of 30 are shortened: %s", n, short)
	}
	if got := shorten(strings.Repeat("é", 200), libctx.ShortSkillAbout); utf8.RuneCountInString(got) != libctx.ShortSkillAbout {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
	few := Text(skills, 1000)
	if n := strings.Count(few, "- s"); n != 5 || !strings.HasSuffix(few, "(25 more skills have no room in this list.)\n") {
		t.Errorf("%d skills: %s", n, few)
	}
}

func TestTextIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var skills []Skill
		for i := range rapid.IntRange(0, 40).Draw(t, "skills") {
			skills = append(skills, Skill{
				Name:        fmt.Sprint("s", i),
				Description: strings.Repeat(rapid.SampledFrom([]string{"é", "a b"}).Draw(t, "of"), rapid.IntRange(0, 300).Draw(t, "times")),
				Path:        "/x",
			})
		}
		max := rapid.IntRange(0, 9000).Draw(t, "max")
		got := Text(skills, max)
		if n := utf8.RuneCountInString(got); n > max {
			t.Fatalf("%d characters, %d are allowed", n, max)
		}
		if missing := strings.Count(got, "- s") < len(skills); missing != strings.Contains(got, "no room") && got != "" {
			t.Fatal("what is missing is not said, or is said and not missing")
		}
	})
}

func BenchmarkDiscover(b *testing.B) {
	dir := b.TempDir()
	for i := range 20 {
		file := filepath.Join(dir, fmt.Sprintf("skills/s%03d/SKILL.md", i))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(about("s", "x")), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	p := discover.Places{ID: asuser.Self(), Global: dir}
	for b.Loop() {
		if found, _ := Discover(p); len(found) != 20 {
			b.Fatal(len(found))
		}
	}
}
