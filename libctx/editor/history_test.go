package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
)

func TestHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a/b/history")
	h := openHistory(file)
	for _, line := range []string{"one", "one", "two\nlines \x1b", " ", strings.Repeat("x", libctx.MaxHistoryLine+1), "three"} {
		h.Write(line)
	}
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	h = openHistory(file)
	var got []string
	for i := -1; i <= h.Len(); i++ {
		line, _ := h.GetLine(i)
		got = append(got, line)
	}
	if fmt.Sprintf("%q", got) != `["" "one" "two\nlines \\x1b" "three" ""]` {
		t.Errorf("%q", got)
	}
}

// TestHistoryFiles: whatever the file is, an editor begins, and does not follow
// links.
func TestHistoryFiles(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("\"good\"\nnot json\n\"torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := openHistory(bad); h.Len() != 1 {
		t.Errorf("%q", h.lines)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(bad, link); err != nil {
		t.Fatal(err)
	}
	h := openHistory(link)
	h.Write("through the link")
	if text, _ := os.ReadFile(bad); strings.Contains(string(text), "through") || h.Len() != 1 {
		t.Errorf("%q %q", text, h.lines)
	}
	if h := openHistory(""); h.Len() != 0 {
		t.Error("a history of nothing")
	}
}

func TestHistoryIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 2*libctx.MaxHistory + 5 {
		fmt.Fprintf(&b, "\"line %d\"\n", i)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	openHistory(file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != libctx.MaxHistory || !strings.HasSuffix(string(text), fmt.Sprintf("\"line %d\"\n", 2*libctx.MaxHistory+4)) {
		t.Errorf("%d lines are left", n)
	}
}
