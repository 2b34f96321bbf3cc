package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/packaging/internal/program"
)

var suite = []*program.Command{{
	Words: "ctx", Usage: []string{"[FLAGS] COMMAND"}, Short: "run agents", Flags: []program.Flag{{Names: []string{"--root"}, Value: "DIR", Text: "the tree_DIR"}},
	Commands: []*program.Command{
		{Words: "ctx init", Usage: []string{""}, Short: "make a tree", Long: []string{"Makes *it*."}, Examples: []string{"ctx init"}},
		{Words: "ctx agent", Usage: []string{"COMMAND"}, Short: "make agents", Commands: []*program.Command{
			{Words: "ctx agent ls", Usage: []string{"[FLAGS]"}, Short: "list them"},
		}},
	},
}}

// tree makes sources with these pages.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestPages(t *testing.T) {
	top := tree(t, map[string]string{
		"docs/man/ctx.1.md": "# ctx(1) - run agents\n\n## Synopsis\n\n<!-- synopsis ctx -->\n\n## Commands\n\n<!-- commands ctx -->\n\n## Flags\n\n<!-- flags ctx -->\n\n## Examples\n\n<!-- examples ctx -->\n",
		"docs/man/f.5.md":   "# f(5) - a file\n\n<!-- page docs/reference/f.md -->\n",
		"docs/reference/f.md": "# F\n\nSee [f.md](f.md) and [more](g.md#x).\n\n## Lines\n\n| file | value | without |\n|---|---|---|\n| `a` | one \\| two | none |\n| `b` | | |\n\n" +
			"- item:\n\n```\ncode | x\n```\n",
	})
	b, err := Read(top, suite)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, p := range b.Pages {
		text, err := b.Render(p, "1.2", "2025-12-01")
		if err != nil {
			t.Fatal(err)
		}
		pages[p.File()] = string(text)
	}
	for page, wants := range map[string][]string{
		"ctx.1": {`.TH "CTX" "1" "2025-12-01" "CortexFS 1.2" "CortexFS"`, "\n.SH NAME\n", "ctx \\- run agents\n", "\n.SH COMMANDS\n", "\n.SS ctx init\n", "Makes *it*\\&.",
			"\\fB--root\\fP \\fIDIR\\fP\nThe tree_DIR.", "See \\fBctx-agent\\fP(1)"},
		"f.5": {"\n.SH LINES\n", "See \\fBf\\fP(5) and more (\\fB/usr/share/doc/cortexfs-ctx/reference/g.md\\fR).", "\\fBa\\fR\none | two; without: none\n", "\n.EX\ncode | x\n.EE"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[page], want) {
				t.Errorf("%s: no %q in\n%s", page, want, pages[page])
			}
		}
	}
	if got := b.Unused(); strings.Join(got, ",") != "ctx agent ls" {
		t.Errorf("unused: %q", got)
	}
}

func TestRefused(t *testing.T) {
	for _, text := range []string{"", "# other(1) - x\n", "# a(1)\n", "# a(1) - x\n<!-- commands ctx frob -->\n", "# a(1) - x\n<!-- nonsense ctx -->\n", "# a(1) - x\n<!-- page docs/none.md -->\n"} {
		b, err := Read(tree(t, map[string]string{"docs/man/a.1.md": text}), suite)
		if err == nil {
			_, err = b.Render(b.Pages[0], "1", "2025-12-01")
		}
		if err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if _, err := Read(t.TempDir(), suite); err == nil {
		t.Error("no page is taken")
	}
}
