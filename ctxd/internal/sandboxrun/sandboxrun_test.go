package sandboxrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/sandbox"
)

// tool is a ctxtool that can do the entry step, where every user may run it.
var tool string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2:]))
	}
	dir, err := os.MkdirTemp("", "sandboxrun-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		tool = filepath.Join(dir, "ctxtool")
		build := exec.Command("go", "build", "-o", tool, "./internal/entry/testdata/ctxtool")
		build.Dir = "../../../tsh"
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build ctxtool:", err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func child([]string) int { return 0 }

func newLauncher(t testing.TB) *Launcher {
	t.Helper()
	l, err := New(Config{Entry: tool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestFirst(t *testing.T) {
	l := newLauncher(t)
	var out, errb bytes.Buffer
	r, err := l.Run(context.Background(), sandbox.Spec{Identity: asuser.Self(), Env: []string{"PATH=/usr/bin:/bin", "A=b"}, Argv: []string{"/bin/sh", "-c", "cat; id; env; ls -la / /etc /proc/self/fd /ctx/bin; cat /proc/1/environ | tr '\\0' '\\n'; tr '\\0' ' ' </proc/1/cmdline; ulimit -a; cat /proc/mounts; echo x >/y; exit 7"}}, Stdio{Stdin: []byte("hello\n"), Stdout: &out, Stderr: &errb})
	fmt.Printf("%v %v\n%s\n---%s\n", r, err, out.String(), errb.String())
}
