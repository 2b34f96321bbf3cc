package sandboxrun

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/sandbox"
)

func TestNeverStarted(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.ws, "plain"), "#!/bin/sh\n")
	w.write(filepath.Join(w.ws, "lost"), "#!/no/such/interpreter\n")
	w.write(filepath.Join(w.ws, "odd"), "\x00\x01\x02")
	for _, f := range []string{"lost", "odd"} {
		if err := os.Chmod(filepath.Join(w.ws, f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name string
		spec func(*sandbox.Spec)
		kind errdefs.Kind
		text string
	}{
		{"missing", func(s *sandbox.Spec) { s.Argv = []string{"/no/such"} }, errdefs.NotFound, "/no/such"},
		{"not executable", func(s *sandbox.Spec) { s.Argv = []string{"/workspace/plain"} }, errdefs.Denied, "/workspace/plain"},
		{"a directory", func(s *sandbox.Spec) { s.Argv = []string{"/workspace"} }, errdefs.Denied, "/workspace"},
		{"no interpreter", func(s *sandbox.Spec) { s.Argv = []string{"/workspace/lost"} }, errdefs.Invalid, "/no/such/interpreter"},
		{"not a program", func(s *sandbox.Spec) { s.Argv = []string{"/workspace/odd"} }, errdefs.Invalid, "odd"},
		{"cwd is gone", func(s *sandbox.Spec) { s.Cwd = "/workspace/gone" }, errdefs.NotFound, "/workspace/gone"},
		{"no argv", func(s *sandbox.Spec) { s.Argv = nil }, errdefs.Invalid, "path"},
		{"relative", func(s *sandbox.Spec) { s.Argv = []string{"true"} }, errdefs.Invalid, "path"},
		{"relative cwd", func(s *sandbox.Spec) { s.Cwd = "x" }, errdefs.Invalid, "absolute"},
		{"environment", func(s *sandbox.Spec) { s.Env = []string{"X"} }, errdefs.Invalid, "environment"},
		{"smuggled option", func(s *sandbox.Spec) { s.Env = []string{"X=1\x00--bind\x00/\x00/host"} }, errdefs.Invalid, "NUL"},
		{"NUL in argv", func(s *sandbox.Spec) { s.Argv = []string{"/bin/true", "a\x00b"} }, errdefs.Invalid, ""},
		{"long word", func(s *sandbox.Spec) { s.Argv = []string{"/bin/true", long} }, errdefs.Invalid, ""},
		{"view is gone", func(s *sandbox.Spec) { s.View = "/no/such/view" }, errdefs.Unavailable, "/no/such/view"},
		{"workspace is gone", func(s *sandbox.Spec) { s.Workspace.Dir = "/no/such/ws" }, errdefs.Unavailable, "/no/such/ws"},
		{"mount is gone", func(s *sandbox.Spec) { s.Mounts = mount.Table{{Source: "/no/such/m", Target: "/m"}} }, errdefs.NotFound, "/no/such/m"},
		{"mount by link", func(s *sandbox.Spec) { s.Mounts = mount.Table{{Source: "/proc/self", Target: "/m"}} }, errdefs.Invalid, "symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := w.spec("/bin/true")
			c.spec(&s)
			var out strings.Builder
			_, err := w.l.Run(context.Background(), s, Stdio{Stdout: &out, Stderr: &out})
			if !errdefs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s %v", errdefs.KindOf(err), err)
			}
			if out.Len() > 0 {
				t.Errorf("output %q", out.String())
			}
		})
	}
}

func TestCheck(t *testing.T) {
	if err := Check(Config{Entry: tool}); err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t, "")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := write("old", "#!/bin/sh\necho 'usage: bwrap [OPTIONS...]'\n")
	for _, c := range []struct {
		name       string
		cfg        Config
		text, hint string
	}{
		{"no bwrap", Config{Bwrap: "/no/such/bwrap", Entry: tool}, "/no/such/bwrap", "install"},
		{"old bwrap", Config{Bwrap: old, Entry: tool}, "--disable-userns", "install"},
		{"bwrap fails", Config{Bwrap: "/bin/false", Entry: tool}, "--help", "install"},
		{"no entry", Config{Entry: "/no/such/ctxtool"}, "/no/such/ctxtool", "install"},
		{"entry is no program", Config{Entry: "/etc/passwd"}, "executable", "install"},
		{"relative entry", Config{Entry: "sandboxrun_test.go"}, "absolute", "install"},
	} {
		err := Check(c.cfg)
		if !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(err.Error(), c.text) || !strings.Contains(errdefs.HintOf(err), c.hint) {
			t.Errorf("%s: %s %v (hint %q)", c.name, errdefs.KindOf(err), err, errdefs.HintOf(err))
		}
	}
}

func TestNamespacesBlocked(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A sandbox in which no user namespace can be made stands for a machine on
	// which none can.
	cmd := exec.Command("/usr/bin/bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/",
		self, "child", "check", tool)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kind, rest, _ := strings.Cut(string(out), "\n")
	if kind != string(errdefs.Unavailable) || !strings.Contains(rest, "namespace") || !strings.Contains(rest, "sysctl") {
		t.Errorf("said %s", out)
	}
}

func TestForeignIdentity(t *testing.T) {
	if asuser.Self().UID == 0 {
		// Root starts programs of everybody; that is what the other tests do.
		return
	}
	w := newWorld(t)
	s := w.spec("/bin/true")
	s.Identity.UID++
	if _, err := w.l.Run(context.Background(), s, Stdio{}); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("error %v", err)
	}
}
