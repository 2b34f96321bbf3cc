package spill

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool/fs"
	"cortexfs.org/tsh/internal/tool/tooltest"
	"pgregory.net/rapid"
)

func place(t testing.TB) Place {
	t.Helper()
	return Place{Home: t.TempDir(), Dir: "cache/spill/s", Run: "01RUN"}
}

func names(t testing.TB, p Place) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(p.Home, p.Dir, "*"))
	tooltest.Must(t, err)
	return all
}

// Whatever pieces an output comes in, its file holds it.
func TestKeepsEverything(t *testing.T) {
	p := place(t)
	rapid.Check(t, func(t2 *rapid.T) {
		small := rapid.IntRange(0, 100).Draw(t2, "small")
		o := New(p, small)
		all := ""
		for _, piece := range rapid.SliceOf(rapid.StringMatching(`[a\n€]{0,40}`)).Draw(t2, "pieces") {
			io.WriteString(o, piece)
			all += piece
		}
		k, ok, err := o.Finish(true)
		if !ok || err != nil {
			t2.Fatal(ok, err)
		}
		text, err := os.ReadFile(k.Path)
		if err != nil || string(text) != all || k.Cut {
			t2.Fatalf("%q, not %q: %+v, %v", text, all, k, err)
		}
	})
	if n := len(names(t, p)); n > libctx.MaxSpillFiles {
		t.Errorf("%d files", n)
	}
}

func TestNotWanted(t *testing.T) {
	p := place(t)
	for _, size := range []int{0, 10, 1000} {
		o := New(p, 100)
		o.Write([]byte(strings.Repeat("x", size)))
		if k, ok, err := o.Finish(false); ok || err != nil {
			t.Errorf("%d: %+v, %v", size, k, err)
		}
	}
	o := New(Place{}, 0)
	o.Write([]byte("x"))
	if _, ok, err := o.Finish(true); ok || err != nil {
		t.Errorf("without a place: %v, %v", ok, err)
	}
	if all := names(t, p); len(all) != 0 {
		t.Errorf("%q", all)
	}
}

func TestBounds(t *testing.T) {
	p := place(t)
	chunk := []byte(strings.Repeat("é", 512<<10))
	var last Kept
	for range 6 {
		o := New(p, 100)
		for range 20 {
			o.Write(chunk)
		}
		k, ok, err := o.Finish(true)
		if !ok || err != nil || !k.Cut || k.Lines != 1 {
			t.Fatalf("%+v, %v, %v", k, ok, err)
		}
		last = k
	}
	total := int64(0)
	for _, name := range names(t, p) {
		st, err := os.Stat(name)
		tooltest.Must(t, err)
		total += st.Size()
		if st.Mode() != 0o600 {
			t.Errorf("mode %v", st.Mode())
		}
	}
	if total > libctx.MaxSpillBytes {
		t.Errorf("%d bytes", total)
	}
	if _, err := os.Stat(last.Path); err != nil {
		t.Error("the newest is gone")
	}
	// fs.read pages it.
	out, err := tooltest.Call(t, fs.Read, map[string]any{"path": last.Path})
	if err != nil || !strings.HasPrefix(out.Text(), "éé") {
		t.Errorf("%v", err)
	}
	// The oldest go first.
	small := place(t)
	for i := range libctx.MaxSpillFiles + 3 {
		o := New(small, 0)
		fmt.Fprintf(o, "%d", i)
		k, _, err := o.Finish(true)
		tooltest.Must(t, err)
		when := time.Unix(int64(1000+i), 0)
		tooltest.Must(t, os.Chtimes(k.Path, when, when))
	}
	kept := map[string]bool{}
	for _, name := range names(t, small) {
		text, _ := os.ReadFile(name)
		kept[string(text)] = true
	}
	if len(kept) != libctx.MaxSpillFiles || kept["2"] || !kept["3"] {
		t.Errorf("%d kept", len(kept))
	}
}

// All sessions of an agent have one bound too.
func TestBoundOfAllSessions(t *testing.T) {
	home := t.TempDir()
	for i := range 20 {
		dir := filepath.Join(home, "cache/spill", fmt.Sprint(i))
		tooltest.Must(t, os.MkdirAll(dir, 0o700))
		tooltest.Must(t, os.WriteFile(dir+"/f", nil, 0o600))
		tooltest.Must(t, os.Truncate(dir+"/f", libctx.MaxSpillFile)) // sparse
		when := time.Unix(int64(1000+i), 0)
		tooltest.Must(t, os.Chtimes(dir+"/f", when, when))
	}
	o := New(Place{Home: home, Dir: "cache/spill/new"}, 0)
	o.Write([]byte("text"))
	if _, ok, err := o.Finish(true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	left, err := filepath.Glob(home + "/cache/spill/*/f")
	if err != nil || len(left) != libctx.MaxSpillAll/libctx.MaxSpillFile-1 {
		t.Errorf("%d files, %v", len(left), err)
	}
	if _, err := os.Stat(home + "/cache/spill/19/f"); err != nil {
		t.Error("the newest is gone")
	}
}

// A place that can not be written to is told, and nothing is followed there.
func TestPlaceIsALink(t *testing.T) {
	p := place(t)
	outside := t.TempDir()
	tooltest.Must(t, os.Mkdir(filepath.Join(p.Home, "cache"), 0o700))
	tooltest.Must(t, os.Symlink(outside, filepath.Join(p.Home, "cache/spill")))
	o := New(p, 0)
	o.Write([]byte("text"))
	if k, ok, err := o.Finish(true); ok || err == nil {
		t.Errorf("%+v", k)
	}
	if all, _ := os.ReadDir(outside); len(all) != 0 {
		t.Errorf("%v", all)
	}
}
