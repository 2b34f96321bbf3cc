package edit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	. "cortexfs.org/tsh/internal/tool/tooltest"
	"github.com/go-json-experiment/json/jsontext"
)

// child is set in a process of this test that another one started, in a sandbox
// or as somebody else: the tool it calls in its current directory.
const child = "CTX_TEST_EDIT"

func TestMain(m *testing.M) {
	name, raw, _ := strings.Cut(os.Getenv(child), " ")
	if name == "" {
		os.Exit(m.Run())
	}
	for _, which := range []tool.Tool{Write, Replace} {
		if string(which.Name) != name {
			continue
		}
		out := new(tool.Output)
		if err := which.Call(context.Background(), jsontext.Value(raw), out); err != nil {
			fmt.Printf("%s %s", errdefs.KindOf(err), err)
			os.Exit(1)
		}
		fmt.Print(out.Content())
	}
}

// elsewhere calls a tool in another process, the words before it being its
// launcher; as is its uid if that is not 0.
func elsewhere(t *testing.T, launcher []string, as uint32, call string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	Must(t, err)
	if as != 0 { // the test binary lies in a private directory
		text, err := os.ReadFile(self)
		Must(t, err)
		self = filepath.Join(shared(t), "test")
		Must(t, os.WriteFile(self, text, 0o755))
	}
	argv := append(launcher, self)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{child + "=" + call}
	if as != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: as, Gid: as}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

// shared is a new directory that everybody can reach.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ctx-edit-")
	Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	Must(t, os.Chmod(dir, 0o755))
	return dir
}

// TestNoSpace: a full disk leaves the old file and nothing else.
func TestNoSpace(t *testing.T) {
	// A small file system of its own, with one file, is made by the launcher; the
	// shell in it looks at what is left.
	small := shared(t)
	script := "cd " + small + ` && echo old > f && "$1"; echo "|$(ls -A) $(cat f)"`
	bwrap := func(extra ...string) []string {
		return append(append([]string{"bwrap", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev"}, extra...), "/bin/sh", "-c", script, "sh")
	}
	big := strings.Repeat("x", 100<<10) // a variable of the environment holds no more than 128 KiB
	for _, call := range []string{
		`fs.write {"path":"f","content":"` + big + `"}`,
		`fs.write {"path":"g","content":"` + big + `"}`,
		`fs.write {"path":"new/and/deep/g","content":"` + big + `"}`,
		`fs.replace {"path":"f","old":"old","new":"` + big + `"}`,
	} {
		out, err := elsewhere(t, bwrap("--size", "65536", "--tmpfs", small), 0, call)
		if err != nil || !strings.HasPrefix(out, "ENOSPC ") || !strings.HasSuffix(out, "no space left on device|f old\n") {
			t.Errorf("%.20s: %q, %v", call, out, err)
		}
	}
}

// TestReadOnly: a read-only file system refuses at once.
func TestReadOnly(t *testing.T) {
	dir := shared(t)
	Must(t, os.WriteFile(dir+"/f", []byte("old"), 0o666))
	launcher := []string{"bwrap", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--chdir", dir}
	for _, call := range []string{
		`fs.write {"path":"f","content":"x"}`, `fs.write {"path":"g","content":"x"}`, `fs.write {"path":"d/g","content":"x"}`,
		`fs.replace {"path":"f","old":"old","new":"x"}`,
	} {
		out, err := elsewhere(t, launcher, 0, call)
		if err == nil || !strings.HasPrefix(out, "EACCES ") || !strings.Contains(out, "read-only file system") {
			t.Errorf("%s: %q, %v", call, out, err)
		}
	}
	clean(t, dir, "f")
}

// TestMountPoint: a file that is bound over can be written to and not replaced.
func TestMountPoint(t *testing.T) {
	dir := shared(t)
	Must(t, os.WriteFile(dir+"/f", []byte("old"), 0o666))
	launcher := []string{"bwrap", "--unshare-user", "--bind", "/", "/", "--dev", "/dev", "--bind", dir + "/f", dir + "/f", "--chdir", dir}
	out, err := elsewhere(t, launcher, 0, `fs.write {"path":"f","content":"x"}`)
	if err == nil || !strings.Contains(out, "mount point") || read(t, dir+"/f") != "old" {
		t.Errorf("%q, %v", out, err)
	}
	clean(t, dir, "f")
}

// TestFilesOfOthers needs a second user, whom only root can be.
func TestFilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const uid = 60001
	for name, c := range map[string]struct {
		dir, file os.FileMode
		words     string
	}{
		"sticky":     {os.ModeSticky | 0o777, 0o666, "belongs to uid 0"},
		"open":       {0o777, 0o666, "belongs to uid 0"},
		"closed":     {0o755, 0o666, "a new file in its directory can not be made"},
		"not theirs": {0o777, 0o644, "mode 0644 of uid 0"},
	} {
		dir := shared(t)
		Must(t, os.Chmod(dir, c.dir))
		Must(t, os.WriteFile(dir+"/f", []byte("old"), 0o600))
		Must(t, os.Chmod(dir+"/f", c.file))
		out, err := elsewhere(t, []string{"/usr/bin/env", "-C", dir}, uid, `fs.replace {"path":"f","old":"old","new":"x"}`)
		if err == nil || !strings.HasPrefix(out, "EACCES ") || !strings.Contains(out, c.words) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if read(t, dir+"/f") != "old" {
			t.Errorf("%s: changed", name)
		}
		clean(t, dir, "f")
	}
}
