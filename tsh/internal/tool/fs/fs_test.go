package fs

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "cortexfs.org/tsh/internal/tool/tooltest"

	"golang.org/x/sys/unix"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/object"
)

// mustRefuse checks kind and form of an error, and that it has these words.
func mustRefuse(t *testing.T, err error, kind errdefs.Kind, words ...string) {
	t.Helper()
	if !errdefs.Is(err, kind) {
		t.Errorf("error is %v of kind %s, not %s", err, errdefs.KindOf(err), kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not say %q: %v", w, err)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Errorf("error is not one line: %q", err)
	}
}

func TestLinksAreRefused(t *testing.T) {
	dir := Place(t, map[string]string{"real/file": "secret\n", "real/sub/file": "deep\n"})
	outside := t.TempDir()
	Must(t, os.WriteFile(filepath.Join(outside, "target"), []byte("outside\n"), 0o644))
	for name, target := range map[string]string{
		"last": "real/file", "dangling": "nowhere", "middle": "real", "out": outside, "loop": "loop", "real/up": "..",
		"self": "/proc/self/cwd",
	} {
		Must(t, os.Symlink(target, name))
	}
	for _, p := range []string{
		"last", "dangling", "loop", "middle/file", "middle/sub/file", "out/target", "real/up/real/file", "./last",
		"self/real/file", "/proc/self/cwd/real/file", "/proc/self/root/etc/passwd", dir + "/middle/file", "middle/../real/file",
	} {
		_, err := Call(t, Read, map[string]any{"path": p})
		mustRefuse(t, err, errdefs.Invalid, "link")
	}
	for _, p := range []string{"middle", "middle/", "middle/sub", "out", "dangling", "self", "/proc/self/cwd"} {
		if _, err := Call(t, List, map[string]any{"path": p}); err == nil {
			t.Errorf("%s was listed", p)
		}
	}
	for _, p := range []string{"middle/file", "out/target", "middle/"} {
		_, err := Call(t, Stat, map[string]any{"path": p})
		mustRefuse(t, err, errdefs.Invalid, "link")
	}
	for p, target := range map[string]string{"last": "real/file", "dangling": "nowhere"} {
		out, err := Call(t, Stat, map[string]any{"path": p})
		if err != nil || !strings.Contains(out.Text(), "kind: link\n") || !strings.Contains(out.Text(), "target: "+target+"\n") {
			t.Errorf("%s: %q, %v", p, out.Text(), err)
		}
	}
	if _, err := os.Lstat("nowhere"); err == nil {
		t.Error("something was created through a dangling link")
	}
}

func TestKindsAreRefusedAtOnce(t *testing.T) {
	dir := Place(t, map[string]string{"d/x": ""})
	Must(t, unix.Mkfifo("fifo", 0o644))
	sock, err := net.Listen("unix", filepath.Join(dir, "s"))
	Must(t, err)
	defer sock.Close()
	proc := fmt.Sprintf("/proc/%d", os.Getpid())
	for p, word := range map[string]string{
		"fifo": "FIFO", "s": "socket", "/dev/zero": "character device", "/dev/null": "character device", "d": "directory",
		proc + "/mem": "kernel", proc + "/pagemap": "kernel", "/proc/kmsg": "kernel", proc + "/environ": "kernel",
	} {
		_, err := Call(t, Read, map[string]any{"path": p})
		if errdefs.Is(err, errdefs.NotFound) && strings.HasPrefix(p, "/proc/k") {
			continue // some kernels have none
		}
		mustRefuse(t, err, errdefs.Invalid, word)
	}
	for p, k := range map[string]string{"fifo": "fifo", "s": "socket", "/dev/zero": "char", "d": "dir", proc + "/mem": "file"} {
		out, err := Call(t, Stat, map[string]any{"path": p})
		if err != nil || !strings.Contains(out.Text(), "kind: "+k+"\n") {
			t.Errorf("stat %s: %q, %v", p, out.Text(), err)
		}
	}
	out, err := Call(t, List, nil)
	if err != nil || strings.Count(out.Text(), "\n") != 3 || !strings.Contains(out.Text(), "fifo\t") || !strings.Contains(out.Text(), "socket\t") {
		t.Errorf("%q, %v", out.Text(), err)
	}
	_, err = Call(t, List, map[string]any{"path": "fifo"})
	mustRefuse(t, err, errdefs.Invalid, "not a directory")
}

// hostile are names that a listing must show without doubt.
var hostile = []string{
	"plain", "two words", " leading", "trailing ", "new\nline", "tab\there", `quo"te`, `"quoted"`, `back\slash`, "-dash", "--all",
	"naïve-日本", "bad\xff\xfeutf8", "esc\x1b[31m", "del\x7f", "rtl\u202egpj.exe", "nbsp\u00a0x", "'single'", "$HOME", "*", "{json", "[note]",
	"\u2028sep", "c1\u009bm", "\xed\xa0\x80surrogate", "...",
}

func TestHostileNamesComeBack(t *testing.T) {
	files := map[string]string{}
	for _, name := range hostile {
		files["in -side/"+name] = "content of " + strings.ToValidUTF8(name, "?")
		files[name] = files["in -side/"+name]
	}
	Place(t, files)
	for _, base := range []string{".", "in -side", "in -side/"} {
		out, err := Call(t, List, map[string]any{"path": base})
		Must(t, err)
		seen := map[string]bool{}
		for line := range strings.Lines(out.Text()) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 5 {
				t.Fatalf("%d fields in %q", len(f), line)
			}
			if f[0] == "dir" {
				continue
			}
			p, err := object.Plain(f[4])
			Must(t, err)
			name := filepath.Base(p)
			got, err := Call(t, Read, map[string]any{"path": f[4]})
			if err != nil || got.Text() != files[name] {
				t.Errorf("%s reads %q, %v", f[4], got.Text(), err)
			}
			if words, err := Call(t, Read, map[string]any{"args": []string{f[4]}}); err != nil || words.Text() != files[name] {
				t.Errorf("%s as a word reads %q, %v", f[4], words.Text(), err)
			}
			if st, err := Call(t, Stat, map[string]any{"path": f[4]}); err != nil || !strings.HasPrefix(st.Text(), "path: "+f[4]+"\n") {
				t.Errorf("stat %s: %q, %v", f[4], st.Text(), err)
			}
			seen[name] = true
		}
		if len(seen) != len(hostile) {
			t.Errorf("%s: %d of %d names seen", base, len(seen), len(hostile))
		}
	}
}

func TestPlain(t *testing.T) {
	for arg, want := range map[string]string{
		"a": "a", `"a\nb"`: "a\nb", `"\xff"`: "\xff", `a"b`: `a"b`, `./"x`: `./"x`,
	} {
		if got, err := object.Plain(arg); err != nil || got != want {
			t.Errorf("%q is %q, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", `"`, `""`, `"a`, `"a"b`, `"\q"`, "a\x00b", `"\x00"`, `"\u0000"`} {
		if got, err := object.Plain(arg); !errdefs.Is(err, errdefs.Invalid) || got != "" {
			t.Errorf("%q is %q, %v", arg, got, err)
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, name := range hostile {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, p string) {
		shown := object.Show(p)
		if strings.ContainsAny(shown, "\n\t\r\x1b\x00") {
			t.Fatalf("%q is shown as %q", p, shown)
		}
		back, err := object.Plain(shown)
		if p == "" || strings.Contains(p, "\x00") {
			if err == nil {
				t.Fatalf("%q is accepted", p)
			}
			return
		}
		if err != nil || back != p {
			t.Fatalf("%q is shown as %q and read as %q, %v", p, shown, back, err)
		}
	})
}

func TestMissing(t *testing.T) {
	Place(t, map[string]string{"f": "x"})
	for _, which := range []tool.Tool{Read, List, Stat} {
		_, err := Call(t, which, map[string]any{"path": "none\nhere"})
		mustRefuse(t, err, errdefs.NotFound, `"none\nhere"`)
		_, err = Call(t, which, map[string]any{"path": "f/x"})
		mustRefuse(t, err, errdefs.NotFound, "f/x")
		_, err = Call(t, which, map[string]any{"path": strings.Repeat("a/", 3000)})
		mustRefuse(t, err, errdefs.Invalid)
	}
}

func TestCurrentDirectoryIsGone(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	Must(t, os.Mkdir(sub, 0o755))
	t.Chdir(sub)
	Must(t, os.Remove(sub))
	for _, which := range []tool.Tool{Read, List, Stat} {
		for _, p := range []string{"f", ".", "./f"} {
			_, err := Call(t, which, map[string]any{"path": p})
			mustRefuse(t, err, errdefs.NotFound, p+": the current directory does not exist any more")
		}
		_, err := Call(t, which, map[string]any{"path": dir})
		if errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("%s of an absolute path: %v", which.Name, err)
		}
	}
}

// A target that may not be read is told of, beside what is known.
func TestStatTargetIsClosed(t *testing.T) {
	const p = "/proc/1/exe"
	out, err := Call(t, Stat, map[string]any{"path": p})
	if errdefs.Is(err, errdefs.NotFound) { // a kernel thread has none
		return
	}
	if err != nil || !strings.Contains(out.Text(), "kind: link\n") {
		t.Fatalf("%q, %v", out.Content(), err)
	}
	if told := len(out.Notes()) == 1 && strings.HasPrefix(out.Notes()[0], "[the target of "+p+" can not be read: "); told == strings.Contains(out.Text(), "target: ") {
		t.Errorf("%q", out.Content())
	}
}
