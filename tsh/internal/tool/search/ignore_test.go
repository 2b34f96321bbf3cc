package search

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "cortexfs.org/tsh/internal/tool/tooltest"
	"pgregory.net/rapid"
)

// visited are the files that a walk of the current directory takes.
func visited(t testing.TB, base string) []string {
	t.Helper()
	out, err := call(t, args("needle", "path", base, "hidden", true, "limit", 10_000))
	Must(t, err)
	var all []string
	for line := range strings.Lines(out.Text()) {
		p, _, _ := strings.Cut(line, ":1: ")
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// kept are the files that git does not ignore.
func kept(t testing.TB) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--others", "--exclude-standard")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent")
	out, err := cmd.Output()
	Must(t, err)
	var all []string
	for p := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(p) > 0 {
			all = append(all, string(p))
		}
	}
	slices.Sort(all)
	return all
}

func repository(t testing.TB) {
	t.Helper()
	if out, err := exec.Command("git", "init", "-q", ".").CombinedOutput(); err != nil {
		t.Fatalf("git: %v: %s", err, out)
	}
}

var tree = []string{"a", "b.log", "keep.log", "dir/a", "dir/b.log", "dir/sub/a", "dir/sub/c.txt", "build/out", "x/build/out", "doc/{b}", "sp ace", "#hash", "!bang", "node/a.b/c"}

// Patterns mean what they mean to git.
func TestIgnoresLikeGit(t *testing.T) {
	line := rapid.SampledFrom([]string{
		"*.log", "!keep.log", "a", "/a", "dir", "dir/", "/dir/", "!dir/", "dir/*", "!dir/sub", "dir/**", "**/a", "**/sub/**", "dir/**/c.txt", "build/", "/build", "x/build",
		"sub", "[ab]*", "[!a]*", "*", "!*", "!*/", "?", "doc/{b}", "{a,b}", "doc/{*", "sp ace", `sp\ ace`, "a   ", "# comment", `\#hash`, `\!bang`, "", "a\r", "/", "//", "!", "**", "/**", "d*/s*/", "node/*.b", "*.b/",
	})
	files := map[string]string{}
	for _, p := range tree {
		files[p] = "needle\n"
	}
	Place(t, files)
	repository(t)
	rapid.Check(t, func(t2 *rapid.T) {
		for _, p := range []string{".gitignore", "dir/.gitignore", ".git/info/exclude"} {
			lines := rapid.SliceOfN(line, 0, 4).Draw(t2, p)
			Must(t, os.WriteFile(p, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
		}
		want := slices.DeleteFunc(kept(t), func(p string) bool { return filepath.Base(p) == ".gitignore" })
		got := visited(t, ".")
		got = slices.DeleteFunc(got, func(p string) bool { return filepath.Base(p) == ".gitignore" })
		if !slices.Equal(got, want) {
			t2.Fatalf("searched %q, git keeps %q", got, want)
		}
	})
}

func TestIgnoreFilesAbove(t *testing.T) {
	dir := Place(t, map[string]string{
		".gitignore": "*.top\n", "repo/.gitignore": "*.log\n/only-here\n", "repo/src/a": "needle\n", "repo/src/b.log": "needle\n", "repo/src/c.top": "needle\n", "repo/src/only-here": "needle\n",
		"repo/src/.ignore": "!b.log\n",
	})
	Must(t, os.Chdir("repo"))
	repository(t)
	// Above the repository nothing counts; .ignore is stronger than .gitignore.
	want := []string{".ignore", "a", "b.log", "c.top", "only-here"}
	for _, place := range []struct{ cwd, base, prefix string }{
		{dir + "/repo", "src", "src/"}, {dir + "/repo/src", ".", ""}, {dir, "repo/src", "repo/src/"}, {"/", dir + "/repo/src", dir + "/repo/src/"},
	} {
		Must(t, os.Chdir(place.cwd))
		var full []string
		for _, p := range want {
			if p != ".ignore" {
				full = append(full, place.prefix+p)
			}
		}
		if got := visited(t, place.base); !slices.Equal(got, full) {
			t.Errorf("%s from %s: %q", place.base, place.cwd, got)
		}
	}
	// Without a repository the current directory is the top.
	Must(t, os.RemoveAll(dir+"/repo/.git"))
	Must(t, os.Chdir(dir))
	if got := visited(t, "repo/src"); slices.Contains(got, "repo/src/c.top") {
		t.Errorf("%q", got)
	}
	Must(t, os.Chdir(dir+"/repo"))
	if got := visited(t, "src"); !slices.Contains(got, "src/c.top") {
		t.Errorf("%q", got)
	}
}

// FuzzParse: whatever a file of patterns holds, it can be asked about any path.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"*.log\n!keep\n", "a/**/b\r\n", "\\", "[", "[a-", "**/**/**/", "\ufeff#\n/\n", "{a,{b}}", "a\\ \n", "!\n"} {
		f.Add([]byte(text), "a/b/c.log")
	}
	f.Fuzz(func(t *testing.T, text []byte, p string) {
		if len(text) > 1000 || len(p) > 200 {
			return
		}
		(&rules{list: parse(text)}).ignored(p, len(p)%2 == 0)
	})
}
