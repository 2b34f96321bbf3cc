package entry

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "entry" {
		os.Exit(Main(os.Args[2:], func([]string) func() int { return nil }))
	}
	os.Exit(m.Run())
}

// step starts this program as an entry step. Descriptor 3 is the token pipe, 4
// the report, 5 and 6 are strays.
func step(t *testing.T, e sandbox.Entry, token string) (out string, code int, report error) {
	t.Helper()
	e.Token, e.Report = 3, 4
	if e.Cwd == "" {
		e.Cwd = "/"
	}
	if e.Limits == (sandbox.Limits{}) {
		e.Limits = sandbox.Limits{Processes: 4096, OpenFiles: 64, FileBytes: 1 << 20}
	}
	return start(t, e.Args(), token)
}

func start(t *testing.T, args []string, token string) (out string, code int, report error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tr, tw := pipe(t)
	rr, rw := pipe(t)
	stray, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer stray.Close()
	cmd := exec.Command(self, append([]string{"entry"}, args...)...)
	cmd.Env = []string{"A=b", "PWD=/from/outside"}
	cmd.ExtraFiles = []*os.File{tr, rw, stray, stray}
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tr.Close()
	rw.Close()
	io.WriteString(tw, token)
	tw.Close()
	text, err := io.ReadAll(rr)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	return buf.String(), cmd.ProcessState.ExitCode(), sandbox.ParseReport(string(text))
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

var token = string(rune(sandbox.Token))

func TestPayload(t *testing.T) {
	dir := t.TempDir()
	e := sandbox.Entry{
		Cwd: dir,
		Argv: []string{"/usr/bin/python3", "-I", "-S", "-c", `
import os, resource as r
print(open("/proc/self/environ").read().replace("\0", ";"))
print(os.getcwd() == os.path.realpath(os.sys.argv[1]))
print([f for f in sorted(os.listdir("/proc/self/fd")) if os.path.lexists("/proc/self/fd/" + f)])
print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_FSIZE), r.getrlimit(r.RLIMIT_CORE))
m = os.umask(0); print(oct(m))
raise SystemExit(5)
`, dir},
	}
	out, code, report := step(t, e, token)
	want := "A=b;\nTrue\n['0', '1', '2']\n(64, 64) (1048576, 1048576) (0, 0)\n0o22\n"
	if report != nil || code != 5 || out != want {
		t.Errorf("report %v, exit %d, output:\n%s", report, code, out)
	}
}

func TestNoToken(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	for _, text := range []string{"", "x"} {
		_, code, report := step(t, sandbox.Entry{Argv: []string{"/bin/touch", mark}}, text)
		if !errdefs.Is(report, errdefs.Cancelled) || code != exitRefused {
			t.Errorf("%q: report %v, exit %d", text, report, code)
		}
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("the payload ran")
	}
}

func TestExchanged(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	dev, ino := uint64(st.Dev), st.Ino
	for _, c := range []struct {
		x    sandbox.Expect
		kind errdefs.Kind
	}{
		{sandbox.Expect{Path: dir, Dev: dev, Ino: ino + 1}, errdefs.Denied},
		{sandbox.Expect{Path: dir, Dev: dev + 1, Ino: ino}, errdefs.Denied},
		{sandbox.Expect{Path: link, Dev: dev, Ino: ino}, errdefs.Denied},
		{sandbox.Expect{Path: dir + "/none", Dev: dev, Ino: ino}, errdefs.Denied},
	} {
		e := sandbox.Entry{Expect: []sandbox.Expect{{Path: dir, Dev: dev, Ino: ino}, c.x}, Argv: []string{"/bin/touch", mark}}
		if _, code, report := step(t, e, token); !errdefs.Is(report, c.kind) || code != exitRefused {
			t.Errorf("%+v: report %v, exit %d", c.x, report, code)
		}
		if _, err := os.Lstat(mark); err == nil {
			t.Fatalf("%+v: the payload ran", c.x)
		}
	}
	e := sandbox.Entry{Expect: []sandbox.Expect{{Path: dir, Dev: dev, Ino: ino}}, Argv: []string{"/bin/touch", mark}}
	if _, code, report := step(t, e, token); report != nil || code != 0 {
		t.Errorf("report %v, exit %d", report, code)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		e    sandbox.Entry
		kind errdefs.Kind
		exit int
	}{
		{"no such program", sandbox.Entry{Argv: []string{"/no/such"}}, errdefs.NotFound, exitNotFound},
		{"not executable", sandbox.Entry{Argv: []string{"/etc/passwd"}}, errdefs.Denied, exitRefused},
		{"no such directory", sandbox.Entry{Cwd: "/no/such", Argv: []string{"/bin/true"}}, errdefs.NotFound, exitNotFound},
		{"not a directory", sandbox.Entry{Cwd: "/etc/passwd", Argv: []string{"/bin/true"}}, errdefs.NotFound, exitNotFound},
	} {
		out, code, report := step(t, c.e, token)
		if !errdefs.Is(report, c.kind) || code != c.exit || out != "" {
			t.Errorf("%s: report %v, exit %d, output %q", c.name, report, code, out)
		}
	}
	out, code, _ := start(t, []string{"--token=3"}, token)
	if code != exitRefused || !strings.HasPrefix(out, "ctxtool: ") || strings.Count(out, "\n") != 1 {
		t.Errorf("bad words: exit %d, output %q", code, out)
	}
}

func TestLowerLimitStays(t *testing.T) {
	e := sandbox.Entry{
		Argv:   []string{"/bin/sh", "-c", "ulimit -n; ulimit -Hn"},
		Limits: sandbox.Limits{Processes: 4096, OpenFiles: 1 << 40, FileBytes: 1 << 62},
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	out, code, report := step(t, e, token)
	if want := fmt.Sprintf("%d\n%d\n", now.Max, now.Max); report != nil || code != 0 || out != want {
		t.Errorf("report %v, exit %d, output %q, want %q", report, code, out, want)
	}
}
