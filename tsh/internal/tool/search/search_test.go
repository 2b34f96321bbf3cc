package search

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	. "cortexfs.org/tsh/internal/tool/tooltest"
	"golang.org/x/sys/unix"
)

// args makes arguments of a pattern and of names and values in turn.
func args(pattern string, pairs ...any) map[string]any {
	m := map[string]any{"pattern": pattern}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func call(t testing.TB, a map[string]any) (*tool.Output, error) {
	t.Helper()
	return Call(t, Search(0), a)
}

func TestSearch(t *testing.T) {
	dir := Place(t, map[string]string{
		"a.go": "package a\n\nfunc Alpha() {}\nfunc beta() {}\n", "sub/b.go": "func Alpha2() {}\r\nend", "sub/deep/c.txt": "Alpha\nalpha\nALPHA\n",
		".hidden/d.go": "Alpha\n", ".env": "Alpha\n", ".git/HEAD": "Alpha\n", "bin": "Alpha\x00\n", "latin": "caf\xe9 Alpha\n", "empty": "",
		"ignored/e.go": "Alpha\n", "f.log": "Alpha\n", ".gitignore": "ignored/\n*.log\n", "-dash": "Alpha\n", "co:lon": "Alpha\n", "new\nline": "Alpha\n",
		"sub/.ignore": "*.txt\n", "last": "no end of line: Alpha",
	})
	Must(t, os.Symlink("a.go", "link"))
	Must(t, os.Symlink("sub", "linkdir"))
	Must(t, unix.Mkfifo("fifo", 0o644))
	all := "./-dash:1: Alpha\na.go:3: func Alpha() {}\n\"co:lon\":1: Alpha\nlast:1: no end of line: Alpha\nlatin:1: caf\ufffd Alpha\n\"new\\nline\":1: Alpha\nsub/b.go:1: func Alpha2() {}\n"
	for _, c := range []struct {
		args  map[string]any
		text  string
		notes string
	}{
		{args("Alpha"), all, "[7 matching lines in 7 files][files not searched: 1 binary]"},
		{args("Alpha", "path", dir+"/sub"), dir + "/sub/b.go:1: func Alpha2() {}\n", "[1 matching line in 1 file]"},
		{args("Alpha", "path", "sub/"), "sub/b.go:1: func Alpha2() {}\n", "[1 matching line in 1 file]"},
		{args("Alpha", "path", "./sub", "ignore", false), "sub/b.go:1: func Alpha2() {}\nsub/deep/c.txt:1: Alpha\n", "[2 matching lines in 2 files]"},
		{args("alpha", "path", "sub", "ignore", false, "case", "ignore"),
			"sub/b.go:1: func Alpha2() {}\nsub/deep/c.txt:1: Alpha\nsub/deep/c.txt:2: alpha\nsub/deep/c.txt:3: ALPHA\n", "[4 matching lines in 2 files]"},
		{args("alpha", "path", "sub/deep/c.txt"), "sub/deep/c.txt:2: alpha\n", "[1 matching line in 1 file]"},
		{args("alpha", "path", "sub/deep/c.txt", "case", "smart"), "sub/deep/c.txt:1: Alpha\nsub/deep/c.txt:2: alpha\nsub/deep/c.txt:3: ALPHA\n", "[3 matching lines in 1 file]"},
		{args("Alpha", "path", "sub/deep/c.txt", "case", "smart"), "sub/deep/c.txt:1: Alpha\n", "[1 matching line in 1 file]"},
		{args("Alpha", "glob", "*.go"), "a.go:3: func Alpha() {}\nsub/b.go:1: func Alpha2() {}\n", "[2 matching lines in 2 files]"},
		{args("Alpha", "glob", "sub/**/*.{go,txt}", "ignore", false), "sub/b.go:1: func Alpha2() {}\nsub/deep/c.txt:1: Alpha\n", "[2 matching lines in 2 files]"},
		{args("Alpha", "glob", "!{sub,la*,-dash,co*,new*}"), "a.go:3: func Alpha() {}\n", "[1 matching line in 1 file][files not searched: 1 binary]"},
		{args("Alpha", "glob", "*.go", "hidden", true), ".hidden/d.go:1: Alpha\na.go:3: func Alpha() {}\nsub/b.go:1: func Alpha2() {}\n", "[3 matching lines in 3 files]"},
		{args("Alpha", "path", ".env"), ".env:1: Alpha\n", "[1 matching line in 1 file]"},
		{args("Alpha", "path", "f.log"), "f.log:1: Alpha\n", "[1 matching line in 1 file]"},
		{args("Alpha", "path", "ignored"), "ignored/e.go:1: Alpha\n", "[1 matching line in 1 file]"},
		{args("Alpha", "path", "bin"), "", "[no match in 0 files; hidden and ignored files were left out][files not searched: 1 binary]"},
		{args("nowhere"), "", "[no match in 8 files; hidden and ignored files were left out][files not searched: 1 binary]"},
		{args("nowhere", "glob", "*.go", "ignore", false, "hidden", true), "", "[no match in 4 files]"},
		{args("func .*\\)", "mode", "regex", "glob", "*.go"), "a.go:3: func Alpha() {}\na.go:4: func beta() {}\nsub/b.go:1: func Alpha2() {}\n", "[3 matching lines in 2 files]"},
		{args(`\}$`, "mode", "regex", "path", "sub/b.go"), "sub/b.go:1: func Alpha2() {}\n", "[1 matching line in 1 file]"},
		{args(`^$`, "mode", "regex", "path", "a.go"), "a.go:2: \n", "[1 matching line in 1 file]"},
		{args(`\Aend\z`, "mode", "regex", "path", "sub/b.go"), "sub/b.go:2: end\n", "[1 matching line in 1 file]"},
		{args(`(?s)Alpha.*end`, "mode", "regex", "path", "sub/b.go"), "", "[no match in 1 file; hidden and ignored files were left out]"},
		{args("beta", "path", "a.go", "context", 1), "a.go-3- func Alpha() {}\na.go:4: func beta() {}\n", "[1 matching line in 1 file]"},
		{args("package", "path", "a.go", "context", 2), "a.go:1: package a\na.go-2- \na.go-3- func Alpha() {}\n", "[1 matching line in 1 file]"},
		{args("func", "glob", "*.go", "context", 1), "a.go-2- \na.go:3: func Alpha() {}\na.go:4: func beta() {}\n--\nsub/b.go:1: func Alpha2() {}\nsub/b.go-2- end\n", "[3 matching lines in 2 files]"},
		{args("func", "limit", 2), "a.go:3: func Alpha() {}\na.go:4: func beta() {}\n", "[stopped after 2 matching lines; more may follow: narrow pattern, path or glob]"},
		{map[string]any{"args": []string{"--case", "smart", "alpha", "sub", "--no-ignore", "--limit=1"}}, "sub/b.go:1: func Alpha2() {}\n",
			"[stopped after 1 matching line; more may follow: narrow pattern, path or glob]"},
	} {
		out, err := call(t, c.args)
		if err != nil || out.Text() != c.text || !strings.HasPrefix(strings.Join(out.Notes(), ""), c.notes) {
			t.Errorf("%v:\n%s%q %v", c.args, out.Text(), out.Notes(), err)
		}
	}
	for _, a := range []map[string]any{
		{}, args(""), args("x", "mode", "glob"), args("x", "case", "yes"), args("x", "context", -1), args("x", "context", 101), args("x", "limit", 0),
		args("x", "limit", 10_001), args("(", "mode", "regex"), args("a\nb"), args(`a\nb`, "mode", "regex"), args(`[\n]`, "mode", "regex"), args("x", "glob", "[a"),
		args("x", "glob", "!"), args("x", "path", ""), args("x", "path", "link"), args("x", "path", "linkdir"), args("x", "path", "linkdir/deep"),
		args("x", "path", "fifo"), args("x", "path", "/proc"), args("x", "path", "/proc/self/environ"), args(strings.Repeat("x", 5000)), args(`\pX`, "mode", "regex"),
		args("x", "hidden", 1), args("x", "unknown", 1),
	} {
		_, err := call(t, a)
		MustRefuse(t, err, errdefs.Invalid)
	}
	_, err := call(t, args("x", "path", "none"))
	MustRefuse(t, err, errdefs.NotFound)
}

func TestAroundMatches(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	Place(t, map[string]string{"f": b.String()})
	out, err := call(t, args(`line (3|6|13|20)$`, "mode", "regex", "context", 2))
	want := []int{-1, -2, 3, -4, -5, 6, -7, -8, 0, -11, -12, 13, -14, -15, 0, -18, -19, 20}
	var got []int
	for line := range strings.Lines(out.Text()) {
		n := 0
		if _, err := fmt.Sscanf(line, "f:%d: line", &n); err != nil {
			fmt.Sscanf(line, "f-%d- line", &n)
			n = -n
		}
		got = append(got, n)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s%v", got, out.Text(), err)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("é", 1000) + "needle" + strings.Repeat("ü", 100_000)
	Place(t, map[string]string{"f": long + "\nshort needle\n", "g": strings.Repeat("x", 100_000) + "end\n"})
	out, err := call(t, args("needle"))
	lines := strings.SplitAfter(out.Text(), "\n")
	if err != nil || len(lines) != 3 || lines[1] != "f:2: short needle\n" || !strings.Contains(lines[0], "éneedleü") ||
		!strings.HasPrefix(lines[0], "f:1: …é") || !strings.HasSuffix(lines[0], "ü…\n") || len([]rune(lines[0])) > libctx.MaxSearchLine+10 {
		t.Errorf("%q, %v", out.Text(), err)
	}
	out, err = call(t, args("en[d]$", "mode", "regex"))
	if err != nil || out.Text() != "" || !strings.Contains(out.Content(), "1 file with lines over 64 KiB") {
		t.Errorf("%q, %v", out.Content(), err)
	}
}

// TestEverythingMatches: the result and the time stay bounded.
func TestEverythingMatches(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("d%d/f%03d", i%7, i)] = strings.Repeat("some text\n\n", 5000)
	}
	Place(t, files)
	for _, pattern := range []string{"", ".*", "x*", "(a|b|)*", `\b|^|$`, "(.*)*$"} {
		a := args(pattern, "mode", "regex", "limit", libctx.MaxSearchMatches)
		if pattern == "" {
			a = args("e", "limit", libctx.MaxSearchMatches, "context", 50)
		}
		begin := time.Now()
		out, err := call(t, a)
		if err != nil || len(out.Content()) > libctx.MaxToolResult || !out.IsTruncated() {
			t.Errorf("%s: %d bytes, %v", pattern, len(out.Content()), err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s took %v", pattern, took)
		}
		if again, _ := call(t, a); again.Content() != out.Content() {
			t.Errorf("%s: another result", pattern)
		}
	}
	// An expression that takes longer than there is time for.
	begin := time.Now()
	out, err := Call(t, Search(time.Second), args("((((.?){10}){10}){10})[0-9]", "mode", "regex"))
	if err != nil || !out.IsTruncated() || !strings.Contains(out.Content(), "time was up") {
		t.Errorf("%q, %v", out.Content(), err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	out, err = call(t, args("some", "limit", 150))
	if err != nil || strings.Count(out.Text(), "\n") != 150 {
		t.Errorf("%d lines, %v", strings.Count(out.Text(), "\n"), err)
	}
}

// TestTimeIsUp: the search ends with what it found until then.
func TestTimeIsUp(t *testing.T) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("f%03d", i)] = "needle\n"
	}
	Place(t, files)
	out, err := Call(t, Search(time.Nanosecond), args("needle"))
	if err != nil || !out.IsTruncated() || !strings.Contains(out.Content(), "time was up after 1ns") {
		t.Errorf("%q, %v", out.Content(), err)
	}
}

func TestSizes(t *testing.T) {
	Place(t, map[string]string{"small": "needle\n", "grown": ""})
	Must(t, os.Truncate("grown", libctx.MaxFileRead+1))
	out, err := call(t, args("needle"))
	if err != nil || out.Text() != "small:1: needle\n" || !strings.Contains(out.Content(), "1 over 32 MiB") {
		t.Errorf("%q, %v", out.Content(), err)
	}
}

// TestBatches: a directory with more entries than are sorted at once is still
// gone through in order, each entry once.
func TestBatches(t *testing.T) {
	dir := Place(t, nil)
	const batch, n = 300, 1000
	for i := range n {
		f, err := unix.Open(filepath.Join(dir, fmt.Sprintf("f%07d", (i*7919)%n)), unix.O_CREAT|unix.O_WRONLY, 0o644)
		Must(t, err)
		unix.Close(f)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	Must(t, err)
	next := 0
	w := walk{ctx: t.Context(), batch: batch, emit: func(_ *shared, name, _ string) bool {
		if name != fmt.Sprintf("f%07d", next) {
			t.Fatalf("entry %d is %s", next, name)
		}
		next++
		return true
	}}
	w.directory(fd, "", "", nil, 1)
	if next != n {
		t.Errorf("%d of %d entries", next, n)
	}
}

func TestDeepTree(t *testing.T) {
	Place(t, map[string]string{strings.Repeat("d/", 80) + "f": "needle", "d/f": "needle"})
	out, err := call(t, args("needle"))
	if err != nil || out.Text() != "d/f:1: needle\n" || !strings.Contains(out.Content(), "64 levels") {
		t.Errorf("%q, %v", out.Content(), err)
	}
}

// TestWorkersEnd: when the call returns nothing of it goes on.
func TestWorkersEnd(t *testing.T) {
	files := map[string]string{}
	for i := range 500 {
		files[fmt.Sprintf("f%03d", i)] = strings.Repeat("needle\n", 100)
	}
	Place(t, files)
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
		if _, err := call(t, args("needle", "limit", 1)); err != nil {
			t.Error(err)
		}
	})
	open, err := os.ReadDir("/proc/self/fd")
	Must(t, err)
	for range 20 {
		if _, err := call(t, args("needle", "limit", 3)); err != nil {
			t.Error(err)
		}
	}
	after, err := os.ReadDir("/proc/self/fd")
	Must(t, err)
	if len(after) > len(open) {
		t.Errorf("%d descriptors, then %d", len(open), len(after))
	}
}
