package terminal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// listing is everything in these directories, with modes and what links lead to,
// but for what is prepared for any sandbox and the daemons' own files.
func listing(t *testing.T, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			st, err := d.Info()
			if err != nil {
				return err
			}
			switch base := d.Name(); {
			case base == "views" || base == ".view" || base == "locks" || strings.HasPrefix(base, "view"):
				return fs.SkipDir
			}
			to, _ := os.Readlink(path)
			fmt.Fprintln(&b, st.Mode(), path, to)
			return nil
		}))
	}
	return b.String()
}

// TestFailedStarts: a start that fails says why and leaves nothing, nowhere.
func TestFailedStarts(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	linked, broken := l.Dir+"/linked", l.Dir+"/broken"
	for _, dir := range []string{linked, broken} {
		l.Mkdir(dir, 0o700)
	}
	must(t, os.Symlink("/tmp", linked+"/.git"))
	l.start(t, "default")
	l.MustCtx("agent", "stop", "--session", "default", "coder") // the daemons run, and have made what is theirs
	everything := func() string { return listing(t, l.Root, l.Layout.Runtime, l.Workspace, l.Home, linked, broken) }
	before := everything()
	for name, c := range map[string]struct {
		flags []string
		code  int
		says  string
	}{
		"no workspace":           {[]string{"--workspace", l.Dir + "/none"}, 2, "none"},
		"a file as workspace":    {[]string{"--workspace", l.Workspace + "/README.md"}, 2, "README.md"},
		"the tree as workspace":  {[]string{"--workspace", l.Root}, 2, l.Root},
		"above the tree":         {[]string{"--workspace", l.Dir}, 2, ""},
		"the runtime directory":  {[]string{"--workspace", l.Runtime}, 2, ""},
		".git is a link":         {[]string{"--workspace", linked}, 2, ".git"},
		"a mount of nothing":     {[]string{"--mount", l.Dir + "/none:/data:ro"}, 1, "none"},
		"a mount without a mode": {[]string{"--mount", l.Workspace + ":/data"}, 2, "mount"},
		"a mount over the tree":  {[]string{"--mount", l.Workspace + ":/ctx/tool:ro"}, 2, "/ctx"},
		"no such cwd":            {[]string{"--cwd", "/workspace/none"}, 1, "none"},
		"a relative cwd":         {[]string{"--cwd", "src"}, 2, "src"},
		"no such supervisor":     {[]string{"--supervisor", "nobody"}, 2, "nobody"},
		"a name of no session":   {[]string{"--session", "a/b"}, 2, ""},
	} {
		args := append([]string{"agent", "start"}, c.flags...)
		if !strings.Contains(name, "supervisor") {
			args = append(args, "--supervisor", "direct")
		}
		if !strings.Contains(name, "session") {
			args = append(args, "--session", "fresh")
		}
		r := l.Ctx(append(args, "coder")...)
		if r.Code != c.code || !strings.Contains(r.Err, c.says) || !strings.HasPrefix(r.Err, "ctx: agent start: ") || r.Out != "" {
			t.Errorf("%s: %+v", name, r)
		}
		if after := everything(); after != before {
			t.Errorf("%s: left\n%s", name, differing(before, after))
		}
		if pids := l.Inside(); len(pids) > 0 {
			t.Errorf("%s: processes %v", name, pids)
		}
	}
	if r := l.Ctx("agent", "start", "nobody"); r.Code != 1 {
		t.Errorf("%+v", r)
	}
	r := l.start(t, "fresh")
	detach(t, r.join(80, 24))
}

// differing are the lines that are in one text only.
func differing(a, b string) string {
	var d strings.Builder
	for _, p := range [][3]string{{"-", a, b}, {"+", b, a}} {
		for line := range strings.Lines(p[1]) {
			if !strings.Contains(p[2], line) {
				d.WriteString(p[0] + line)
			}
		}
	}
	return d.String()
}
