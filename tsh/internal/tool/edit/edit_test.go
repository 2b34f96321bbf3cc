package edit

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	. "cortexfs.org/tsh/internal/tool/tooltest"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// args makes arguments of names and values in turn.
func args(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func read(t testing.TB, p string) string {
	t.Helper()
	b, err := os.ReadFile(p)
	Must(t, err)
	return string(b)
}

// clean fails the test if something that is not in names lies in a directory.
func clean(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	Must(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, found, names)
	}
}

func TestWrite(t *testing.T) {
	old := unix.Umask(0o022)
	defer unix.Umask(old)
	Place(t, map[string]string{"there": "a\nb\nc\n", "bin": "\x00\xff"})
	for _, c := range []struct {
		args        map[string]any
		path, text  string
		said, notes string
	}{
		{args("path", "new", "content", "x\ny"), "new", "x\ny", "new: created, 2 lines, 3 bytes\n", ""},
		{args("path", "empty", "content", ""), "empty", "", "empty: created, 0 lines, 0 bytes\n", ""},
		{args("path", "a/b/c/new", "content", "x\n"), "a/b/c/new", "x\n", "a/b/c/new: created, 1 line, 2 bytes\n", ""},
		{args("path", "there", "content", "a\nB\nc\n"), "there", "a\nB\nc\n", "--- there\n+++ there\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", ""},
		{args("path", "there", "content", "a\nB\nc\n"), "there", "a\nB\nc\n", "there: unchanged\n", ""},
		{args("path", "./there", "content", ""), "there", "", "--- ./there\n+++ ./there\n@@ -1,3 +0,0 @@\n-a\n-B\n-c\n", ""},
		{args("path", "there", "content", "z"), "there", "z", "--- there\n+++ there\n@@ -0,0 +1 @@\n+z\n\\ No newline at end of file\n", ""},
		{args("path", "bin", "content", "text"), "bin", "text", "bin: replaced, 4 bytes; before it was 2 bytes\n", ""},
		{args("path", `"new\nline"`, "content", "x"), "new\nline", "x", "\"new\\nline\": created, 1 line, 1 bytes\n", ""},
		{args("args", []string{"words", "content here"}), "words", "content here", "words: created, 1 line, 12 bytes\n", ""},
		{args("path", "nul", "content", "a\x00b"), "nul", "a\x00b", "nul: created, 1 line, 3 bytes\n", ""},
		{args("path", "words", "content", "again", "expected_hash", sha([]byte("content here"))), "words", "again",
			"--- words\n+++ words\n@@ -1 +1 @@\n-content here\n\\ No newline at end of file\n+again\n\\ No newline at end of file\n", ""},
	} {
		out, err := Call(t, Write, c.args)
		if err != nil || out.Text() != c.said {
			t.Errorf("%v: %q, %v", c.args, out.Text(), err)
			continue
		}
		if got := read(t, c.path); got != c.text {
			t.Errorf("%v: the file holds %q", c.args, got)
		}
		if notes := out.Notes(); len(notes) != 1 || notes[0] != "[sha256 "+sha([]byte(c.text))+"]" {
			t.Errorf("%v: notes %q", c.args, notes)
		}
	}
	for p, want := range map[string]os.FileMode{"new": 0o644, "a/b/c/new": 0o644, "a/b": os.ModeDir | 0o755} {
		if st, err := os.Stat(p); err != nil || st.Mode() != want {
			t.Errorf("%s: mode %v, %v", p, st.Mode(), err)
		}
	}
	clean(t, "a/b/c", "new")
	for _, a := range []map[string]any{
		{}, args("path", "x"), args("content", "x"), args("path", "", "content", "x"), args("path", "x", "content", nil), args("path", "x", "content", 1),
		args("path", "d/", "content", ""), args("path", ".", "content", ""), args("path", "a/..", "content", ""), args("path", "a", "content", ""),
		args("path", "x\x00", "content", ""), args("path", strings.Repeat("n", 300), "content", ""), args("args", []string{"x"}),
	} {
		_, err := Call(t, Write, a)
		MustRefuse(t, err, errdefs.Invalid)
	}
	_, err := Call(t, Write, args("path", "new/below", "content", "x"))
	MustRefuse(t, err, errdefs.NotFound, "new/below: not a directory")
	_, err = Call(t, Write, args("path", "/proc/sys/kernel/hostname", "content", "x"))
	MustRefuse(t, err, errdefs.Invalid, "kernel")
	_, err = Call(t, Write, args("path", "words", "content", "x", "expected_hash", sha([]byte("other"))))
	MustRefuse(t, err, errdefs.Busy, "another content", sha([]byte("again")))
	_, err = Call(t, Write, args("path", "fresh/none", "content", "x", "expected_hash", sha(nil)))
	MustRefuse(t, err, errdefs.NotFound)
	if _, err := os.Lstat("fresh"); err == nil {
		t.Error("a refused call left a directory")
	}
}

func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name, before, old, new string
		all                    bool
		after                  string
	}{
		{"once", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n"},
		{"lines", "a\nb\nc\n", "a\nb\n", "", false, "c\n"},
		{"all", "aXbXc", "X", "--", true, "a--b--c"},
		{"all of one", "aXb", "X", "Y", true, "aYb"},
		{"all, side by side", "aaaa", "aa", "b", true, "bb"},
		{"no end of line", "a\nb", "b", "c\n", false, "a\nc\n"},
		{"crlf", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", false, "x\r\ny\r\nz\r\nc\r\n"},
		{"crlf as it is", "a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n"},
		{"crlf, new lines only", "a\r\nb\r\n", "b", "b\nc", false, "a\r\nb\r\nc\r\n"},
		{"mixed, exact", "a\nb\r\nc\n", "a\n", "x\n", false, "x\nb\r\nc\n"},
		{"mixed, by crlf", "a\nb\r\nc\r\n", "b\nc", "x\ny", false, "a\nx\r\ny\r\n"},
		{"mixed, untouched rest", "a\r\nb\nc\r\n", "b", "B", false, "a\r\nB\nc\r\n"},
		{"lf, old with crlf", "a\nb\n", "a\r\nb", "x\r\ny", false, "x\ny\n"},
		{"mark", "\ufeffa\nb\n", "a", "x", false, "\ufeffx\nb\n"},
		{"mark in old", "\ufeffa\nb\n", "\ufeffa", "x", false, "\ufeffx\nb\n"},
		{"mark and crlf", "\ufeffa\r\nb\r\n", "a\nb", "b\na", false, "\ufeffb\r\na\r\n"},
		{"characters", "für über\n", "ü", "ue", true, "fuer ueber\n"},
		{"literal", "a.b $1\n", "a.b $1", "$0\\n", false, "$0\\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			Place(t, map[string]string{"f": c.before})
			out, err := Call(t, Replace, args("path", "f", "old", c.old, "new", c.new, "all", c.all))
			if got := read(t, "f"); err != nil || got != c.after {
				t.Fatalf("%q, %v", got, err)
			}
			if notes := out.Notes(); notes[len(notes)-1] != "[sha256 "+sha([]byte(c.after))+"]" {
				t.Errorf("%q", notes)
			}
			if !strings.HasPrefix(out.Text(), "--- f\n+++ f\n@@ -1") {
				t.Errorf("%q", out.Text())
			}
			clean(t, ".", "f")
		})
	}
}

func TestReplaceRefuses(t *testing.T) {
	Place(t, map[string]string{
		"f": "func alpha() {\n\treturn one\n}\n\nfunc beta() {\n\treturn one\n}\n", "aaa": "aaa", "latin": "caf\xe9\n", "empty": "",
		"many": strings.Repeat("x\n", 30),
	})
	for _, c := range []struct {
		args  map[string]any
		kind  errdefs.Kind
		words []string
	}{
		{args("path", "f", "old", "return one", "new", "x"), errdefs.Invalid, []string{"old occurs 2 times, on lines 2, 6", "all"}},
		{args("path", "f", "old", "}\n", "new", "x"), errdefs.Invalid, []string{"lines 3, 7"}},
		{args("path", "many", "old", "x", "new", "y"), errdefs.Invalid, []string{"30 times, on lines 1, 2", "20, …"}},
		{args("path", "aaa", "old", "aa", "new", "b"), errdefs.Invalid, []string{"2 times, on lines 1, 1"}},
		{args("path", "f", "old", "return two", "new", "x"), errdefs.Invalid, []string{"does not occur", `line 2: "\treturn one"`, `line 6`}},
		{args("path", "f", "old", "func alpha(){\n    return one", "new", "x"), errdefs.Invalid, []string{`line 1: "func alpha() {"`}},
		{args("path", "f", "old", "beta {", "new", "x"), errdefs.Invalid, []string{`most similar: line 5: "func beta() {"`}},
		{args("path", "f", "old", "zzz qqq", "new", "x"), errdefs.Invalid, []string{"read the file"}},
		{args("path", "empty", "old", "x", "new", "y"), errdefs.Invalid, []string{"does not occur"}},
		{args("path", "none", "old", "x", "new", "y"), errdefs.NotFound, []string{"no such file", "fs.write"}},
		{args("path", "none/f", "old", "x", "new", "y"), errdefs.NotFound, nil},
		{args("path", "latin", "old", "caf", "new", "y"), errdefs.Invalid, []string{"binary", "byte 3"}},
		{args("path", "f", "old", "alpha", "new", "x", "expected_hash", sha(nil)), errdefs.Busy, []string{"another content"}},
		{args("path", "f", "old", "", "new", "x"), errdefs.Invalid, nil},
		{args("path", "f", "old", "x", "new", "x"), errdefs.Invalid, []string{"same"}},
		{args("path", "f", "old", "x"), errdefs.Invalid, []string{"new is missing"}},
		{args("path", ".", "old", "x", "new", "y"), errdefs.Invalid, []string{"directory"}},
	} {
		before := read(t, "f")
		_, err := Call(t, Replace, c.args)
		MustRefuse(t, err, c.kind, c.words...)
		if read(t, "f") != before {
			t.Fatalf("%v changed the file", c.args)
		}
	}
	clean(t, ".", "aaa", "empty", "f", "latin", "many")
}

func TestLinksAndKinds(t *testing.T) {
	dir := Place(t, map[string]string{"real/file": "text\n"})
	outside := t.TempDir()
	Must(t, os.WriteFile(filepath.Join(outside, "target"), []byte("text\n"), 0o644))
	for name, target := range map[string]string{
		"last": "real/file", "dangling": "nowhere", "dangling-dir": "nowhere-dir", "middle": "real", "out": outside, "loop": "loop", "self": "/proc/self/cwd",
	} {
		Must(t, os.Symlink(target, name))
	}
	Must(t, unix.Mkfifo("fifo", 0o644))
	for _, p := range []string{
		"last", "dangling", "dangling/x", "dangling-dir/a/b", "middle/file", "middle/new", "middle/new/deep", "out/target", "out/new", "loop", "loop/x",
		"self/real/file", "self/new", dir + "/middle/new", "fifo", "/dev/null", "/dev/full",
	} {
		_, err := Call(t, Write, args("path", p, "content", "new"))
		MustRefuse(t, err, errdefs.Invalid)
		_, err = Call(t, Replace, args("path", p, "old", "text", "new", "new"))
		if err == nil {
			t.Errorf("%s was changed", p)
		}
	}
	clean(t, "real", "file")
	clean(t, outside, "target")
	clean(t, dir, "dangling", "dangling-dir", "fifo", "last", "loop", "middle", "out", "real", "self")
	if read(t, "real/file")+read(t, outside+"/target") != "text\ntext\n" {
		t.Error("something behind a link was changed")
	}
}

func TestHardLinks(t *testing.T) {
	Place(t, map[string]string{"f": "text\n"})
	Must(t, os.Link("f", "g"))
	for _, which := range []tool.Tool{Write, Replace} {
		a := args("path", "f", "content", "new")
		if which.Name == Replace.Name {
			a = args("path", "f", "old", "text", "new", "new")
		}
		_, err := Call(t, which, a)
		MustRefuse(t, err, errdefs.Invalid, "2 hard links", "copy")
	}
	if read(t, "f")+read(t, "g") != "text\ntext\n" {
		t.Error("changed")
	}
	clean(t, ".", "f", "g")
}

func TestModeAndAttributesStay(t *testing.T) {
	Place(t, map[string]string{"f": "text\n"})
	for _, mode := range []uint32{0o600, 0o755, 0o640, 0o666, 0o2755, 0o4711} {
		Must(t, unix.Chmod("f", mode))
		Must(t, unix.Setxattr("f", "user.note", []byte("kept"), 0))
		before := read(t, "f")
		_, err := Call(t, Replace, args("path", "f", "old", before, "new", before+"more\n"))
		Must(t, err)
		var st unix.Stat_t
		Must(t, unix.Stat("f", &st))
		// Set-id bits were given to the old content.
		if want := mode &^ 0o6000; st.Mode&0o7777 != want {
			t.Errorf("mode %o became %o, not %o", mode, st.Mode&0o7777, want)
		}
		value := make([]byte, 10)
		if n, err := unix.Getxattr("f", "user.note", value); err != nil || string(value[:n]) != "kept" {
			t.Errorf("attribute: %q, %v", value[:n], err)
		}
	}
	// A file that nobody may write stays, though its directory could replace it.
	if os.Geteuid() != 0 {
		Must(t, unix.Chmod("f", 0o444))
		_, err := Call(t, Write, args("path", "f", "content", "x"))
		MustRefuse(t, err, errdefs.Denied, "mode 0444")
	}
}

// TestDefaultAccessList: what a directory gives new files is not given to a file
// that was there without it.
func TestDefaultAccessList(t *testing.T) {
	Place(t, map[string]string{"f": "old\n"})
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 7, 1<<32 - 1}, {2, 7, 60001}, {4, 5, 1<<32 - 1}, {16, 7, 1<<32 - 1}, {32, 5, 1<<32 - 1}} {
		list = binary.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = binary.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = binary.LittleEndian.AppendUint32(list, e[2])
	}
	Must(t, os.Chmod("f", 0o640))
	Must(t, unix.Setxattr(".", "system.posix_acl_default", list, 0))
	_, err := Call(t, Write, args("path", "f", "content", "new\n"))
	Must(t, err)
	if _, err := unix.Getxattr("f", accessList, nil); err == nil {
		t.Error("the file has an access list now")
	}
	if st, err := os.Stat("f"); err != nil || st.Mode().Perm() != 0o640 || read(t, "f") != "new\n" {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

func TestSetgidDirectory(t *testing.T) {
	Place(t, nil)
	Must(t, os.Mkdir("shared", 0o755))
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 60002
		Must(t, os.Chown("shared", 0, group))
	}
	Must(t, unix.Chmod("shared", 0o2775))
	_, err := Call(t, Write, args("path", "shared/sub/new", "content", "x"))
	Must(t, err)
	for _, p := range []string{"shared/sub", "shared/sub/new"} {
		var st unix.Stat_t
		Must(t, unix.Stat(p, &st))
		if st.Gid != uint32(group) {
			t.Errorf("%s has group %d", p, st.Gid)
		}
	}
	if os.Geteuid() == 0 {
		// A file of another group keeps it, whatever the directory says.
		Must(t, os.Chown("shared/sub/new", 60001, 60003))
		_, err = Call(t, Write, args("path", "shared/sub/new", "content", "y"))
		Must(t, err)
		var st unix.Stat_t
		Must(t, unix.Stat("shared/sub/new", &st))
		if st.Uid != 60001 || st.Gid != 60003 {
			t.Errorf("owner %d, group %d", st.Uid, st.Gid)
		}
	}
}

// TestChangedMeanwhile: whatever happens to the target between the read and the
// commit, it is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	for name, meddle := range map[string]func(){
		"written to": func() { os.WriteFile("f", []byte("other\n"), 0o644) },
		"same size, old time": func() {
			st, _ := os.Stat("f")
			os.WriteFile("f", []byte("tExt\n"), 0o644)
			os.Chtimes("f", st.ModTime(), st.ModTime())
		},
		"replaced": func() { os.WriteFile("g", []byte("text\n"), 0o644); os.Rename("g", "f") },
		"removed":  func() { os.Remove("f") },
		"a link":   func() { os.Remove("f"); os.Symlink("/etc/passwd", "f") },
		"a fifo":   func() { os.Remove("f"); unix.Mkfifo("f", 0o644) },
		"linked":   func() { os.Link("f", "g"); os.Remove("g") },
		"mode":     func() { os.Chmod("f", 0o600) },
		"grown":    func() { f, _ := os.OpenFile("f", os.O_APPEND|os.O_WRONLY, 0); f.WriteString("x"); f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			Place(t, map[string]string{"f": "text\n"})
			beforeCompare = meddle
			defer func() { beforeCompare = func() {} }()
			_, err := Call(t, Replace, args("path", "f", "old", "text", "new", "new"))
			MustRefuse(t, err, errdefs.Busy, "meanwhile")
			if st, err := os.Lstat("f"); err == nil && st.Mode().IsRegular() && strings.Contains(read(t, "f"), "new") {
				t.Error("overwritten")
			}
			matches, _ := filepath.Glob(".ctx-*")
			if len(matches) > 0 {
				t.Errorf("left behind: %q", matches)
			}
		})
	}
	// A new file does not overwrite one that appeared meanwhile.
	Place(t, nil)
	beforeCompare = func() { os.WriteFile("f", []byte("theirs"), 0o644) }
	defer func() { beforeCompare = func() {} }()
	_, err := Call(t, Write, args("path", "f", "content", "mine"))
	MustRefuse(t, err, errdefs.Busy)
	if read(t, "f") != "theirs" {
		t.Error("overwritten")
	}
	clean(t, ".", "f")
	// The directory's name becoming a link does not redirect the write.
	outside := t.TempDir()
	Place(t, map[string]string{"d/f": "text"})
	beforeCompare = func() { os.Rename("d", "moved"); os.Symlink(outside, "d") }
	_, err = Call(t, Write, args("path", "d/f", "content", "mine"))
	Must(t, err)
	clean(t, outside)
	if read(t, "moved/f") != "mine" {
		t.Error("written elsewhere")
	}
}

func TestLargeFile(t *testing.T) {
	line := strings.Repeat("x", 63) + "\n"
	Place(t, map[string]string{"f": strings.Repeat(line, libctx.MaxFileRead/64-1) + "the needle is here " + strings.Repeat("y", 44) + "\n", "sparse": ""})
	out, err := Call(t, Replace, args("path", "f", "old", "needle", "new", "noodle"))
	if err != nil || !strings.Contains(out.Text(), "+the noodle") || len(out.Content()) > libctx.MaxToolResult {
		t.Errorf("%q, %v", out.Text(), err)
	}
	if st, _ := os.Stat("f"); st.Size() != libctx.MaxFileRead {
		t.Errorf("%d bytes", st.Size())
	}
	_, err = Call(t, Replace, args("path", "f", "old", "noodle", "new", "noodles"))
	MustRefuse(t, err, errdefs.TooBig)
	_, err = Call(t, Replace, args("path", "f", "old", "x", "new", "xx", "all", true))
	MustRefuse(t, err, errdefs.TooBig)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err = Call(t, Replace, args("path", "f", "old", "x", "new", "z", "all", true))
	runtime.ReadMemStats(&after)
	if err != nil || !out.IsTruncated() || len(out.Text()) > libctx.MaxDiff {
		t.Errorf("%d bytes of diff, %v", len(out.Text()), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 10*libctx.MaxFileRead {
		t.Errorf("%d MiB were allocated", used>>20)
	}
	Must(t, os.Truncate("sparse", libctx.MaxFileRead+1))
	for _, which := range []tool.Tool{Write, Replace} {
		a := args("path", "sparse", "content", "x")
		if which.Name == Replace.Name {
			a = args("path", "sparse", "old", "x", "new", "y")
		}
		_, err = Call(t, which, a)
		MustRefuse(t, err, errdefs.TooBig, fmt.Sprint(libctx.MaxFileRead))
	}
}

// TestNothingIsLeft: a write that fails removes the directories it made, and no
// other.
func TestNothingIsLeft(t *testing.T) {
	dir := Place(t, map[string]string{"there/f": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []string{"there/a/b/c/new", "a/new", dir + "/a/b/new", "a/../a/./b/new"} {
		err := Write.Call(ctx, jsontext.Value(fmt.Sprintf(`{"path":%q,"content":"x"}`, p)), new(tool.Output))
		MustRefuse(t, err, errdefs.Cancelled)
		clean(t, ".", "there")
		clean(t, "there", "f")
	}
	// A name in the way is found when directories above it were made already.
	_, err := Call(t, Write, args("path", "n/"+strings.Repeat("x", 256)+"/new", "content", "x"))
	MustRefuse(t, err, errdefs.Invalid)
	clean(t, ".", "there")
	// What somebody else put there meanwhile stays.
	beforeCompare = func() {
		Must(t, os.WriteFile("a/b/new", []byte("theirs"), 0o644))
		Must(t, os.WriteFile("a/other", nil, 0o644))
	}
	defer func() { beforeCompare = func() {} }()
	_, err = Call(t, Write, args("path", "a/b/new", "content", "x"))
	MustRefuse(t, err, errdefs.Busy, "changed by somebody else")
	if read(t, "a/b/new") != "theirs" {
		t.Error("it was overwritten")
	}
	clean(t, "a", "b other")
}

func TestCurrentDirectoryIsGone(t *testing.T) {
	sub := filepath.Join(Place(t, nil), "sub")
	Must(t, os.Mkdir(sub, 0o755))
	t.Chdir(sub)
	Must(t, os.Remove(sub))
	for _, p := range []string{"f", "d/f", "./f"} {
		_, err := Call(t, Write, args("path", p, "content", "x"))
		MustRefuse(t, err, errdefs.NotFound, "the current directory does not exist any more")
	}
	_, err := Call(t, Write, args("path", filepath.Dir(sub)+"/f", "content", "x"))
	Must(t, err)
}

// TestWords: what the kernel says in one word is said in more.
func TestWords(t *testing.T) {
	for err, word := range map[error]string{
		unix.EPERM: "immutable or append-only", unix.ENOENT: "removed meanwhile", &os.PathError{Op: "write", Path: "x", Err: unix.EPERM}: "append-only",
	} {
		if got := (&target{path: "p"}).failed("can not be made", err).Error(); !strings.HasPrefix(got, "p: can not be made: ") || !strings.Contains(got, word) {
			t.Error(got)
		}
	}
}

// TestAttributesOfChattr: the kernel's answer is the same wherever the test can
// set the attributes and where it can not.
func TestAttributesOfChattr(t *testing.T) {
	for attribute, word := range map[uint64]string{
		unix.STATX_ATTR_IMMUTABLE: "immutable", unix.STATX_ATTR_APPEND: "append-only", unix.STATX_ATTR_COMPRESSED: "",
	} {
		if got := fixed(attribute | unix.STATX_ATTR_NODUMP); got != word {
			t.Errorf("%x: %q", attribute, got)
		}
	}
	const immutable, appendOnly = 0x10, 0x20 // FS_…_FL
	set := func(p string, flag int, on bool) error {
		f, err := os.Open(p)
		Must(t, err)
		defer f.Close()
		flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		if flags &^= flag; on {
			flags |= flag
		}
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	for flag, word := range map[int]string{immutable: "immutable", appendOnly: "append-only"} {
		Place(t, map[string]string{"d/f": "text\n"})
		for _, p := range []string{"d/f", "d"} {
			if err := set(p, flag, true); err != nil {
				continue // no right to, or not on this file system
			}
			_, err := Call(t, Write, args("path", "d/f", "content", "x"))
			_, err2 := Call(t, Replace, args("path", "d/f", "old", "text", "new", "x"))
			Must(t, set(p, flag, false))
			MustRefuse(t, err, errdefs.Denied, word, "chattr")
			MustRefuse(t, err2, errdefs.Denied, word)
			if p == "d" && flag == immutable {
				Must(t, set(p, flag, true))
				_, err := Call(t, Write, args("path", "d/sub/new", "content", "x"))
				Must(t, set(p, flag, false))
				MustRefuse(t, err, errdefs.Denied, "immutable", "chattr")
			}
			if read(t, "d/f") != "text\n" {
				t.Errorf("%s: changed", word)
			}
			clean(t, "d", "f")
		}
	}
}
