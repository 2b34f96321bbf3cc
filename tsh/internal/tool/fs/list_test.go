package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "cortexfs.org/tsh/internal/tool/tooltest"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
)

// names are the paths of a listing.
func names(out *tool.Output) []string {
	var got []string
	for line := range strings.Lines(out.Text()) {
		got = append(got, strings.Split(strings.TrimSuffix(line, "\n"), "\t")[4])
	}
	return got
}

func TestList(t *testing.T) {
	dir := Place(t, map[string]string{
		"b": "12345", "a/x": "", "a/deep/y": "", "a-b": "", ".git/HEAD": "", ".hidden": "", "sub/.git/config": "", "sub/z": "",
	})
	Must(t, os.Symlink("a", "link"))
	Must(t, os.Mkdir("empty", 0o700))
	top := []string{".git", ".hidden", "a", "a-b", "b", "empty", "link", "sub"}
	for _, c := range []struct {
		args  map[string]any
		want  []string
		notes string
	}{
		{nil, top, ""},
		{map[string]any{"path": "."}, top, ""},
		{map[string]any{"path": "a"}, []string{"a/deep", "a/x"}, ""},
		{map[string]any{"path": "./a/"}, []string{"a/deep", "a/x"}, ""},
		{map[string]any{"path": "a/../a"}, []string{"a/deep", "a/x"}, ""},
		{map[string]any{"path": dir + "/a"}, []string{dir + "/a/deep", dir + "/a/x"}, ""},
		{map[string]any{"path": "empty"}, nil, "[empty directory]"},
		{map[string]any{"limit": 2}, top[:2], "[2 of 8 entries; next: after=.hidden]"},
		{map[string]any{"limit": 2, "after": ".hidden"}, top[2:4], "[2 of 8 entries; next: after=a-b]"},
		{map[string]any{"after": "link"}, top[7:], ""},
		{map[string]any{"after": "between"}, top[5:], ""},
		{map[string]any{"after": "sub"}, nil, "[nothing follows]"},
		{map[string]any{"limit": 8}, top, ""},
		{map[string]any{"recursive": true}, []string{
			".git", ".hidden", "a", "a/deep", "a/deep/y", "a/x", "a-b", "b", "empty", "link", "sub", "sub/.git", "sub/z"}, ""},
		{map[string]any{"depth": 2, "path": "a"}, []string{"a/deep", "a/deep/y", "a/x"}, ""},
		{map[string]any{"depth": 1, "recursive": true, "path": "a"}, []string{"a/deep", "a/x"}, ""},
		{map[string]any{"recursive": true, "limit": 4}, []string{".git", ".hidden", "a", "a/deep"}, "[4 entries, more follow; next: after=a/deep]"},
		{map[string]any{"recursive": true, "limit": 3, "after": "a/deep"}, []string{"a/deep/y", "a/x", "a-b"}, "[3 entries, more follow; next: after=a-b]"},
		{map[string]any{"recursive": true, "path": ".git"}, []string{".git/HEAD"}, ""},
		{map[string]any{"args": []string{"a", "--depth", "2", "--after=a/deep"}}, []string{"a/deep/y", "a/x"}, ""},
	} {
		out, err := Call(t, List, c.args)
		if err != nil || !slices.Equal(names(out), c.want) || strings.Join(out.Notes(), "") != c.notes {
			t.Errorf("%v: %q %q %v", c.args, names(out), out.Notes(), err)
		}
		if cut := strings.Contains(c.notes, "next"); out.IsTruncated() != cut {
			t.Errorf("%v: truncated %v", c.args, out.IsTruncated())
		}
	}
	out, err := Call(t, List, nil)
	Must(t, err)
	if want := regexp.MustCompile(`(?m)^file\t0644\t5\t\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\tb$`); !want.MatchString(out.Text()) {
		t.Errorf("%q", out.Text())
	}
	if !strings.Contains(out.Text(), "dir\t0700\t") || !strings.Contains(out.Text(), "link\t") {
		t.Errorf("%q", out.Text())
	}
	for _, args := range []map[string]any{
		{"path": ""}, {"depth": 0}, {"depth": libctx.MaxListDepth + 1}, {"limit": 0}, {"limit": libctx.MaxListEntries + 1}, {"path": "b"},
		{"path": "a", "after": "b"}, {"path": "a", "after": "a"}, {"after": "/etc"}, {"after": "."}, {"after": "./"}, {"after": "../x"}, {"after": ".."},
		{"path": "a", "after": "a/../b"}, {"path": "a", "after": "a/../../x"}, {"path": "/", "after": "etc"}, {"path": "/", "after": "/"}, {"recursive": 1}, {"args": []string{"a", "b"}},
	} {
		_, err := Call(t, List, args)
		mustRefuse(t, err, errdefs.Invalid)
	}
}

// Following the notes gives every entry once, in order, whatever cut them.
func TestListGoesOn(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		for j := range 40 {
			files[fmt.Sprintf("dir %02d\n/%s-%02d", i, strings.Repeat("x", 60), j)] = ""
		}
	}
	Place(t, files)
	for _, limit := range []int{7, 1000, libctx.MaxListEntries} {
		var all []string
		args := map[string]any{"recursive": true, "limit": limit}
		for {
			out, err := Call(t, List, args)
			Must(t, err)
			if n := len(out.Content()); n > libctx.MaxToolResult {
				t.Fatalf("%d bytes", n)
			}
			all = append(all, names(out)...)
			if !out.IsTruncated() {
				break
			}
			_, after, _ := strings.Cut(strings.TrimSuffix(out.Notes()[0], "]"), "after=")
			args["after"] = after
		}
		if len(all) != 40*41 || len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Errorf("limit %d: %d entries", limit, len(all))
		}
	}
}

func TestListManyEntriesIsSortedThenCut(t *testing.T) {
	dir := Place(t, nil)
	for i := range 3000 {
		Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", (i*7919)%3000)), nil, 0o644))
	}
	out, err := Call(t, List, map[string]any{"limit": 10})
	Must(t, err)
	for i, name := range names(out) {
		if name != fmt.Sprintf("f%04d", i) {
			t.Errorf("entry %d is %s", i, name)
		}
	}
	if out.Notes()[0] != "[10 of 3000 entries; next: after=f0009]" {
		t.Errorf("%q", out.Notes())
	}
}

func TestListClosedDirectory(t *testing.T) {
	Place(t, map[string]string{"closed/x": "", "open/y": ""})
	Must(t, os.Chmod("closed", 0))
	t.Cleanup(func() { os.Chmod("closed", 0o700) })
	out, err := Call(t, List, map[string]any{"recursive": true})
	Must(t, err)
	want := []string{"closed", "open", "open/y"}
	if os.Geteuid() == 0 {
		want = []string{"closed", "closed/x", "open", "open/y"}
	} else if len(out.Notes()) != 1 || !strings.Contains(out.Notes()[0], "closed: permission denied") {
		t.Errorf("%q", out.Notes())
	}
	if !slices.Equal(names(out), want) {
		t.Errorf("%q", names(out))
	}
}

func TestListDepthIsBounded(t *testing.T) {
	Place(t, map[string]string{strings.Repeat("d/", 80) + "f": ""})
	out, err := Call(t, List, map[string]any{"recursive": true})
	if err != nil || len(names(out)) != libctx.MaxListDepth {
		t.Errorf("%d entries, %v", len(names(out)), err)
	}
	if len(out.Notes()) == 0 {
		t.Error("nothing says that there is more below")
	}
}

func BenchmarkList10k(b *testing.B) {
	dir := Place(b, nil)
	for i := range 10_000 {
		Must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("entry-%05d", i)), nil, 0o644))
	}
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			if _, err := Call(b, List, map[string]any{"limit": 10_000}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadDir("."); err != nil {
				b.Fatal(err)
			}
		}
	})
}
