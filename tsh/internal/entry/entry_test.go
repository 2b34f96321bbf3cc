package entry

import (
	"bytes"
	"errors"
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

var few = sandbox.Limits{Processes: 4096, OpenFiles: 64, FileBytes: 1 << 20}

// step starts this program as an entry step and asks it for a payload.
func step(t *testing.T, r sandbox.Request) (out string, code int, report error) {
	t.Helper()
	return limited(t, few, r)
}

func limited(t *testing.T, limits sandbox.Limits, r sandbox.Request) (out string, code int, report error) {
	t.Helper()
	if r.Cwd == "" {
		r.Cwd = "/"
	}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, sandbox.Entry{Channel: 3, Limits: limits}.Args(), text, 3+r.Passed)
}

// start starts this program as an entry step, whose descriptor 3 is its channel
// and 4 and 5 are strays, and says text to it, with so many streams; the first
// process of a sandbox has none of them. The output is what came through these,
// and then what was said to the process's own.
func start(t *testing.T, args []string, text []byte, streams int) (out string, code int, report error) {
	t.Helper()
	return startWith(t, args, text, streams, 2)
}

// startWith is start with so many strays.
func startWith(t *testing.T, args []string, text []byte, streams, strays int) (out string, code int, report error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close()
	defer theirs.Close()
	stray, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer stray.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command(self, append([]string{"entry"}, args...)...)
	cmd.Env = []string{"OLD=x", "PWD=/from/outside"}
	cmd.ExtraFiles = []*os.File{theirs}
	for range strays {
		cmd.ExtraFiles = append(cmd.ExtraFiles, stray)
	}
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	all := []int{int(null.Fd()), int(w.Fd()), int(w.Fd()), int(r.Fd()), int(stray.Fd())}
	var rights []byte
	if streams > 0 {
		rights = unix.UnixRights(all[:streams]...)
	}
	if len(text) > 0 {
		n, err := unix.SendmsgN(pair[0], text, rights, nil, unix.MSG_NOSIGNAL)
		if err == nil && n < len(text) {
			_, err = ours.Write(text[n:])
		}
		if err != nil && !errors.Is(err, unix.EPIPE) {
			t.Fatal(err)
		}
	}
	w.Close()
	if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(ours)
	if err != nil && !errors.Is(err, unix.ECONNRESET) {
		t.Fatal(err)
	}
	through, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	return string(through) + buf.String(), cmd.ProcessState.ExitCode(), sandbox.ParseReport(string(said))
}

func TestPayload(t *testing.T) {
	dir := t.TempDir()
	r := sandbox.Request{
		Cwd: dir,
		Env: []string{"A=b", "C=d=e"},
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
	out, code, report := step(t, r)
	want := "A=b;C=d=e;\nTrue\n['0', '1', '2']\n(64, 64) (1048576, 1048576) (0, 0)\n0o22\n"
	if report != nil || code != 5 || out != want {
		t.Errorf("report %v, exit %d, output:\n%s", report, code, out)
	}
}

// TestPassed: what is passed besides the streams is 3 and 4 of the payload, in
// this order, whatever had these numbers before, and nothing else is open.
func TestPassed(t *testing.T) {
	r := sandbox.Request{Passed: 2, Cwd: "/", Argv: []string{"/usr/bin/python3", "-I", "-S", "-c", `
import os
print(os.readlink("/proc/self/fd/3").split(":")[0], os.readlink("/proc/self/fd/4"))
print([f for f in sorted(os.listdir("/proc/self/fd")) if os.path.lexists("/proc/self/fd/" + f)])
`}}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	args := sandbox.Entry{Channel: 3, Limits: few}.Args()
	for strays := range 4 {
		out, code, report := startWith(t, args, text, 5, strays)
		if want := "pipe /\n['0', '1', '2', '3', '4']\n"; report != nil || code != 0 || out != want {
			t.Errorf("%d strays: report %v, exit %d, output %q", strays, report, code, out)
		}
	}
	// What is missing is missed.
	for _, streams := range []int{3, 4} {
		if _, code, report := startWith(t, args, text, streams, 0); !errdefs.Is(report, errdefs.Protocol) || code != exitRefused {
			t.Errorf("%d instead of 5: report %v, exit %d", streams, report, code)
		}
	}
}

// TestNoRequest: whatever comes in place of a whole request with its streams,
// the end of the channel above all, nothing runs.
func TestNoRequest(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	good, err := sandbox.Request{Cwd: "/", Argv: []string{"/bin/touch", mark}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(good)
	other[0]++
	wild := append(bytes.Clone(good[:sandbox.RequestHead]), bytes.Repeat([]byte{0}, len(good)-sandbox.RequestHead)...)
	for _, c := range []struct {
		name    string
		text    []byte
		streams int
		kind    errdefs.Kind
	}{
		{"the end", nil, 0, errdefs.Cancelled},
		{"half a head", good[:3], 3, errdefs.Protocol},
		{"a head", good[:sandbox.RequestHead], 3, errdefs.Cancelled},
		{"all but a byte", good[:len(good)-1], 3, errdefs.Cancelled},
		{"another head", other, 3, errdefs.Protocol},
		{"another body", wild, 3, errdefs.Protocol},
		{"no streams", good, 0, errdefs.Protocol},
		{"two streams", good, 2, errdefs.Protocol},
		{"four streams", good, 4, errdefs.Protocol},
	} {
		_, code, report := start(t, sandbox.Entry{Channel: 3, Limits: few}.Args(), c.text, c.streams)
		if !errdefs.Is(report, c.kind) || code != exitRefused {
			t.Errorf("%s: report %v, exit %d", c.name, report, code)
		}
	}
	if _, err := os.Lstat(mark); err == nil {
		t.Error("the payload ran")
	}
}

// TestOneRequest: what follows a request is nobody's.
func TestOneRequest(t *testing.T) {
	dir := t.TempDir()
	text := func(name string) []byte {
		b, err := sandbox.Request{Cwd: "/", Argv: []string{"/bin/touch", filepath.Join(dir, name)}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	_, code, report := start(t, sandbox.Entry{Channel: 3, Limits: few}.Args(), append(text("one"), text("two")...), 3)
	if report != nil || code != 0 {
		t.Errorf("report %v, exit %d", report, code)
	}
	if got, err := os.ReadDir(dir); err != nil || len(got) != 1 || got[0].Name() != "one" {
		t.Errorf("%v %v", got, err)
	}
}

// TestLongRequest: a request larger than any socket's buffer.
func TestLongRequest(t *testing.T) {
	words := []string{"/bin/sh", "-c", "echo $#", "sh"}
	for range 15 {
		words = append(words, strings.Repeat("x", 100<<10))
	}
	if out, code, report := step(t, sandbox.Request{Argv: words}); report != nil || code != 0 || out != "15\n" {
		t.Errorf("report %v, exit %d, output %q", report, code, out)
	}
	words = append(words, strings.Repeat("x", 200<<10)) // one word longer than the kernel takes
	if out, code, report := step(t, sandbox.Request{Argv: words}); !errdefs.Is(report, errdefs.Invalid) || code != exitRefused || out != "" {
		t.Errorf("report %v, exit %d, output %q", report, code, out)
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
	good := sandbox.Expect{Path: dir, Dev: dev, Ino: ino}
	for _, x := range []sandbox.Expect{
		{Path: dir, Dev: dev, Ino: ino + 1},
		{Path: dir, Dev: dev + 1, Ino: ino},
		{Path: link, Dev: dev, Ino: ino},
		{Path: dir + "/none", Dev: dev, Ino: ino},
		{Path: dir, Dev: dev, Ino: ino, ReadOnly: true}, // the mount that protected it is gone
	} {
		r := sandbox.Request{Expect: []sandbox.Expect{good, x}, Argv: []string{"/bin/touch", mark}}
		if _, code, report := step(t, r); !errdefs.Is(report, errdefs.Denied) || code != exitRefused {
			t.Errorf("%+v: report %v, exit %d", x, report, code)
		}
		if _, err := os.Lstat(mark); err == nil {
			t.Fatalf("%+v: the payload ran", x)
		}
	}
	if _, code, report := step(t, sandbox.Request{Expect: []sandbox.Expect{good}, Argv: []string{"/bin/touch", mark}}); report != nil || code != 0 {
		t.Errorf("report %v, exit %d", report, code)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		r    sandbox.Request
		kind errdefs.Kind
		exit int
	}{
		{"no such program", sandbox.Request{Argv: []string{"/no/such"}}, errdefs.NotFound, exitNotFound},
		{"not executable", sandbox.Request{Argv: []string{"/etc/passwd"}}, errdefs.Denied, exitRefused},
		{"no such directory", sandbox.Request{Cwd: "/no/such", Argv: []string{"/bin/true"}}, errdefs.NotFound, exitNotFound},
		{"not a directory", sandbox.Request{Cwd: "/etc/passwd", Argv: []string{"/bin/true"}}, errdefs.NotFound, exitNotFound},
	} {
		out, code, report := step(t, c.r)
		if !errdefs.Is(report, c.kind) || code != c.exit || out != "" {
			t.Errorf("%s: report %v, exit %d, output %q", c.name, report, code, out)
		}
	}
	out, code, _ := start(t, []string{"--channel=3"}, nil, 0)
	if code != exitRefused || !strings.HasPrefix(out, "ctxtool: ") || strings.Count(out, "\n") != 1 {
		t.Errorf("bad words: exit %d, output %q", code, out)
	}
}

func TestLowerLimitStays(t *testing.T) {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	out, code, report := limited(t, sandbox.Limits{Processes: 4096, OpenFiles: 1 << 40, FileBytes: 1 << 62},
		sandbox.Request{Argv: []string{"/bin/sh", "-c", "ulimit -n; ulimit -Hn"}})
	if want := fmt.Sprintf("%d\n%d\n", now.Max, now.Max); report != nil || code != 0 || out != want {
		t.Errorf("report %v, exit %d, output %q, want %q", report, code, out, want)
	}
}

// TestInterpreter: a script whose interpreter is not there says so, as the
// kernel's own answer would have it that the script is not.
func TestInterpreter(t *testing.T) {
	script := filepath.Join(t.TempDir(), "tool")
	for line, want := range map[string]string{
		"#!/usr/bin/python3\r\nprint()\r\n": `interpreter "/usr/bin/python3\r"`,
		"#! /no/such/thing -x\n":            `interpreter "/no/such/thing"`,
	} {
		if err := os.WriteFile(script, []byte(line), 0o755); err != nil {
			t.Fatal(err)
		}
		_, _, report := step(t, sandbox.Request{Cwd: "/", Argv: []string{script}})
		if !errdefs.Is(report, errdefs.Invalid) || !strings.Contains(report.Error(), want) {
			t.Errorf("%q: %v", line, report)
		}
	}
	_, code, report := step(t, sandbox.Request{Cwd: "/", Argv: []string{script + "2"}})
	if !errdefs.Is(report, errdefs.NotFound) || code != exitNotFound {
		t.Errorf("no script: exit %d, %v", code, report)
	}
}
