package toolfile

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

func TestReadsWhatTheTreeHolds(t *testing.T) {
	for _, tool := range builtin.Tools() {
		p := filepath.Join(t.TempDir(), string(tool.Name))
		if err := os.WriteFile(p, tool.Files()[""], 0o755); err != nil {
			t.Fatal(err)
		}
		if name, err := Read(p); err != nil || name != tool.Name {
			t.Errorf("%s reads as %q, %v", tool.Name, name, err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, kind := range map[string]errdefs.Kind{
		dir: errdefs.Invalid, fifo: errdefs.Invalid, "/dev/zero": errdefs.Invalid, filepath.Join(dir, "none"): errdefs.NotFound,
	} {
		if _, err := Read(path); !errdefs.Is(err, kind) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "\n", "fs.read\n", "#!/ctx/bin/ctxtool", "#!/ctx/bin/ctxtool\n", "#!/ctx/bin/ctxtool\nfs.read",
		"#!/ctx/bin/ctxtool\nfs.read\n\n", "#!/ctx/bin/ctxtool\nfs.read\nfs.list\n", "#!/ctx/bin/ctxtool\n fs.read\n",
		"#!/ctx/bin/ctxtool\r\nfs.read\r\n", "#!/ctx/bin/ctxtool\n../x\n", "#!x\na\x00b\n", "\xef\xbb\xbf#!/x\nfs.read\n",
		"#!" + strings.Repeat("x", libctx.MaxToolScript) + "\nfs.read\n",
	} {
		if name, err := Parse([]byte(text)); !errdefs.Is(err, errdefs.Invalid) || name != "" {
			t.Errorf("%.40q reads as %q, %v", text, name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tool := range builtin.Tools() {
		f.Add(tool.Files()[""])
	}
	f.Add([]byte("#!\nx\n"))
	f.Add([]byte("#!/ctx/bin/ctxtool\nfs.read"))
	f.Fuzz(func(t *testing.T, text []byte) {
		name, err := Parse(text)
		if err != nil {
			if name != "" || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%q, %v", name, err)
			}
			return
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		if again := string(first) + "\n" + string(name) + "\n"; again != string(text) {
			t.Fatalf("%q is read as %q", text, again)
		}
	})
}

func TestOwn(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		own  bool
	}{
		"ours":        {"#!/ctx/bin/ctxtool\nfs.read\n", 0o755, true},
		"other":       {"#!/bin/sh\nfs.read\n", 0o755, false},
		"prefix":      {"#!/ctx/bin/ctxtool2\nfs.read\n", 0o755, false},
		"argument":    {"#!/ctx/bin/ctxtool -x\nfs.read\n", 0o755, false},
		"more":        {"#!/ctx/bin/ctxtool\nfs.read\nmore\n", 0o755, false},
		"program":     {"\x7fELF", 0o755, false},
		"not allowed": {"#!/ctx/bin/ctxtool\nfs.read\n", 0o644, false},
	} {
		p := filepath.Join(t.TempDir(), "tool")
		if err := os.WriteFile(p, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if got := Own(p, "/ctx/bin/ctxtool"); got != c.own {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Own(filepath.Join(t.TempDir(), "missing"), "/ctx/bin/ctxtool") {
		t.Error("a missing file is ours")
	}
}
