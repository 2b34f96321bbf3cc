package edit

import (
	"bytes"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool"
	"pgregory.net/rapid"
)

// apply makes the new text of the old one.
func apply(old []byte, all []change) string {
	var b strings.Builder
	split, at := lines(old), 0
	for _, c := range all {
		b.Write(bytes.Join(split[at:c.from], nil))
		b.Write(bytes.Join(c.lines, nil))
		at = c.to
	}
	b.Write(bytes.Join(split[at:], nil))
	return b.String()
}

// The changes that a diff shows are those that were made.
func TestChangesAreTheDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.StringMatching(`[ab\n]{0,40}`).Draw(t, "text"))
		old := rapid.StringMatching(`[ab\n]{1,4}`).Draw(t, "old")
		new := rapid.StringMatching(`[abc\n]{0,5}`).Draw(t, "new")
		want := strings.ReplaceAll(string(text), old, new)
		all := edits(text, 0, old, new)
		if got := apply(text, all); got != want {
			t.Fatalf("edits make %q, not %q", got, want)
		}
		if got := apply(text, refine(lines(text), all)); got != want {
			t.Fatalf("refined they make %q, not %q", got, want)
		}
		if got := apply(text, changes(lines(text), lines([]byte(want)))); got != want {
			t.Fatalf("changes make %q, not %q", got, want)
		}
	})
}

func TestDiff(t *testing.T) {
	var old, fresh strings.Builder
	for i := range 30 {
		old.WriteString(string(rune('a'+i%26)) + "\n")
		switch i {
		case 2, 20:
			fresh.WriteString("X\n")
		case 4:
		case 25:
			fresh.WriteString("z\nmore\n")
		default:
			fresh.WriteString(string(rune('a'+i%26)) + "\n")
		}
	}
	out := new(tool.Output)
	show(out, "f", []byte(old.String()), changes(lines([]byte(old.String())), lines([]byte(fresh.String()))))
	want := `--- f
+++ f
@@ -1,8 +1,7 @@
 a
 b
-c
+X
 d
-e
 f
 g
 h
@@ -18,12 +17,13 @@
 r
 s
 t
-u
+X
 v
 w
 x
 y
 z
+more
 a
 b
 c
`
	if out.Text() != want {
		t.Errorf("%s", out.Text())
	}
}

func TestDiffIsBounded(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	old := []byte(long + "\n" + strings.Repeat("line\n", 50_000))
	out := new(tool.Output)
	show(out, "f", old, changes(lines(old), lines([]byte(strings.ToUpper(string(old))))))
	if len(out.Text()) > libctx.MaxDiff || !out.IsTruncated() || len(out.Notes()) != 1 || !strings.Contains(out.Text(), " bytes more]\n") {
		t.Errorf("%d bytes, %q", len(out.Text()), out.Notes())
	}
}

// FuzzNearest: whatever the texts, at most three lines are named and they exist.
func FuzzNearest(f *testing.F) {
	f.Add("a line\nanother line\n", "a lime")
	f.Add("\n\n\n", "  ")
	f.Add("x", "xx")
	f.Add("\xff\xfe\n", "\xff\xfe")
	f.Fuzz(func(t *testing.T, text, key string) {
		near := nearest([]byte(text), key)
		if len(near) > 3 {
			t.Fatal(len(near))
		}
		for _, n := range near {
			if n.number < 1 || n.number > len(lines([]byte(text))) {
				t.Fatalf("line %d", n.number)
			}
		}
	})
}
