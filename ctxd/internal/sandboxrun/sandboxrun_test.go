package sandboxrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/workspace"
)

// tool is a ctxtool that can do the entry step, where every user may run it.
var tool string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		os.Exit(child(os.Args[2:]))
	}
	if tool = os.Getenv(ownMounts); tool != "" {
		os.Exit(m.Run())
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

func newLauncher(t testing.TB) *Launcher {
	t.Helper()
	l, err := New(Config{Entry: tool})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// world is what a sandbox is made from: an agent's home, a view, a workspace,
// and the user they belong to.
type world struct {
	t   testing.TB
	l   *Launcher
	id  asuser.Identity
	dir string // holds all of it
	ws  string
}

// newWorld makes one below a directory of every user. As root it belongs to a
// uid that no account has.
func newWorld(t testing.TB) *world {
	t.Helper()
	id := asuser.Self()
	if id.UID == 0 {
		id = asuser.Identity{UID: 60001, GID: 60001}
	}
	return newWorldOf(t, id)
}

func newWorldOf(t testing.TB, id asuser.Identity) *world {
	t.Helper()
	w := &world{t: t, l: newLauncher(t), id: id, dir: tempDir(t, "")}
	w.own(w.dir)
	w.ws = filepath.Join(w.dir, "ws")
	w.mkdir(w.ws)
	w.mkdir(filepath.Join(w.dir, "home"))
	w.mkdir(filepath.Join(w.dir, "home/session"))
	w.mkdir(filepath.Join(w.dir, "view"))
	w.mkdir(filepath.Join(w.dir, "view/bin"))
	w.write(filepath.Join(w.dir, "view/bin/ctxtool"), "")
	w.write(filepath.Join(w.dir, "view/bin/tsh"), "")
	w.write(filepath.Join(w.dir, "view/bin/ctxterm"), "")
	return w
}

// tempDir is a new directory that every user may enter, below parent or /tmp.
func tempDir(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (w *world) own(path string) {
	w.t.Helper()
	if !w.id.IsSelf() {
		if err := os.Chown(path, int(w.id.UID), int(w.id.GID)); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) mkdir(path string) {
	w.t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.own(path)
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.own(path)
}

// resolve looks the workspace up.
func (w *world) resolve(dir string) sandbox.Workspace {
	w.t.Helper()
	ws, err := workspace.Resolve(dir, w.id, nil, workspace.Protect{})
	if err != nil {
		w.t.Fatal(err)
	}
	return ws
}

// spec is a sandbox of this world that runs argv.
func (w *world) spec(argv ...string) sandbox.Spec {
	w.t.Helper()
	return sandbox.Spec{
		Identity:  w.id,
		View:      filepath.Join(w.dir, "view"),
		Home:      filepath.Join(w.dir, "home"),
		Workspace: w.resolve(w.ws),
		Env:       []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/agent"},
		Argv:      argv,
	}
}

// run runs a spec and returns its exit code and all output.
func (w *world) run(s sandbox.Spec, stdin string) (code int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	r, err := w.l.Run(context.Background(), s, Stdio{Stdin: []byte(stdin), Stdout: &out, Stderr: &errs})
	if err != nil {
		w.t.Fatalf("run %q: %v", s.Argv, err)
	}
	return r.ExitCode, out.String(), errs.String()
}

// sh runs a shell script and returns its output; it must succeed.
func (w *world) sh(script string) string {
	w.t.Helper()
	code, out, errs := w.run(w.spec("/bin/sh", "-c", script), "")
	if code != 0 {
		w.t.Fatalf("%s\nexit %d\n%s%s", script, code, out, errs)
	}
	return strings.TrimSpace(out)
}

// python runs a Python program likewise.
func (w *world) python(program string, more ...func(*sandbox.Spec)) string {
	w.t.Helper()
	s := w.spec("/usr/bin/python3", "-I", "-S", "-c", program)
	for _, m := range more {
		m(&s)
	}
	code, out, errs := w.run(s, "")
	if code != 0 {
		w.t.Fatalf("%s\nexit %d\n%s%s", program, code, out, errs)
	}
	return strings.TrimSpace(out)
}

// listing is every path below the workspace.
func (w *world) listing() string {
	w.t.Helper()
	var all []string
	err := filepath.WalkDir(w.ws, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func TestRun(t *testing.T) {
	w := newWorld(t)
	s := w.spec("/bin/sh", "-c", `cat; pwd; echo "$0 $1" >&2; exit 7`, "a b", "ünï")
	code, out, errs := w.run(s, "hello\n")
	if code != 7 || out != "hello\n/workspace\n" || errs != "a b ünï\n" {
		t.Fatalf("code %d, out %q, err %q", code, out, errs)
	}
	if code, _, _ := w.run(w.spec("/bin/sh", "-c", "kill -SEGV $$"), ""); code != 128+11 {
		t.Errorf("death by a signal is %d", code)
	}
	s = w.spec("/bin/sh", "-c", "pwd")
	s.Cwd = "/home/agent"
	if _, out, _ := w.run(s, ""); out != "/home/agent\n" {
		t.Errorf("cwd %q", out)
	}
	// Standard input is at its end if there is none, and can be written while
	// output is read.
	if out := w.sh("wc -c"); out != "0" {
		t.Errorf("empty stdin has %s bytes", out)
	}
	big := strings.Repeat("0123456789abcde\n", 1<<16)
	_, out, _ = w.run(w.spec("/bin/sh", "-c", "head -c 3000000 /dev/zero; cat"), big)
	if len(out) != 3000000+len(big) || !strings.HasSuffix(out, big) {
		t.Errorf("%d bytes came back", len(out))
	}
	// A payload that does not read its input.
	if code, _, _ := w.run(w.spec("/bin/true"), big); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	before := openFiles(t)
	s := w.spec("/bin/sh", "-c", "cat")
	type result struct {
		want, out string
		err       error
	}
	const n = 24
	results := make(chan result, n)
	for i := range n {
		go func() {
			var out bytes.Buffer
			in := strconv.Itoa(i)
			_, err := w.l.Run(context.Background(), s, Stdio{Stdin: []byte(in), Stdout: &out})
			results <- result{in, out.String(), err}
		}()
	}
	for range n {
		if r := <-results; r.err != nil || r.out != r.want {
			t.Errorf("%q %v, want %q", r.out, r.err, r.want)
		}
	}
	w.l.Close() // and with it what is prepared for a next call
	if after := openFiles(t); after > before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
