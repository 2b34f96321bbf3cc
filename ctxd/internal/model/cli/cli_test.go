package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const patience = time.Minute

// The test binary is ctxmodel when it is started under that name. At its end it
// says what the process was.
func TestMain(m *testing.M) {
	if os.Args[0] != "ctxmodel" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var core unix.Rlimit
	if err := errors.Join(err, unix.Getrlimit(unix.RLIMIT_CORE, &core)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	fmt.Fprintf(os.Stderr, "process: environment %q dumpable %d core %d %d\n", os.Environ(), dumpable, core.Cur, core.Max)
	os.Exit(code)
}

// guarded is what every process that did something says at its end.
const guarded = "process: environment [] dumpable 0 core 0 0\n"

// hostile are variables that must not matter.
var hostile = []string{
	"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "ALL_PROXY=socks5://127.0.0.1:1", "NO_PROXY=*", "OPENAI_API_KEY=sk-environment",
	"OPENAI_BASE_URL=http://127.0.0.1:1", "OPENAI_ORG_ID=x", "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/dev/null", "GODEBUG=netdns=go+9", "RES_OPTIONS=debug",
}

// program is ctxmodel with these arguments, for a tree that is not there.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Args = append([]string{"ctxmodel"}, args...)
	dir := t.TempDir()
	cmd.Env = append([]string{"HOME=" + dir, "CTX_ROOT=" + filepath.Join(dir, "tree")}, hostile...)
	return cmd
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcome runs a program to its end.
func outcome(t *testing.T, cmd *exec.Cmd, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const frames = `{"type":"start","model":"debug/echo"}
{"type":"delta","text":"hello"}
{"type":"message","content":[{"type":"text","text":"hello"}],"stop":"end"}
{"type":"usage","input":2,"output":2}
{"type":"done","status":"ok"}
`

func TestRun(t *testing.T) {
	request := `{"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`
	for _, c := range []struct {
		args   []string
		stdin  string
		stdout string
		code   int
		says   string
	}{
		{[]string{"run", "debug/echo", "hello"}, "", "hello\n", 0, ""},
		{[]string{"run", "debug/echo", "hello", "you"}, "", "hello you\n", 0, ""},
		{[]string{"run", "debug/echo", "--raw", "hello"}, "", frames, 0, ""},
		{[]string{"run", "debug/echo", "hello", "--root", "/nowhere"}, "", "hello\n", 0, ""},
		{[]string{"run", "debug/echo", "--", "--raw"}, "", "--raw\n", 0, ""},
		{[]string{"run", "debug/echo"}, "hello\n", "hello\n", 0, ""},
		{[]string{"run", "debug/echo", "-"}, "a\x1b[31m\xff", "a\\x1b[31m\uFFFD\n", 0, ""},
		{[]string{"run", "debug/echo", "-"}, request, frames, 0, ""},
		{[]string{"run", "debug/echo"}, `{"op":"generate","version":1,"model":"debug/echo",` + request[1:] + "\n", frames, 0, ""},
		{[]string{"run", "debug/echo"}, `{"model":"debug/tools",` + request[1:], "", 2, "names the model debug/tools"},
		{[]string{"run", "debug/echo"}, `{"op":"probe",` + request[1:], "", 2, "only generate"},
		{[]string{"run", "debug/echo"}, `{"stream":true,` + request[1:], "", 2, "stream"},
		{[]string{"run", "debug/echo"}, `{"messages":[]}`, "", 2, "messages"},
		{[]string{"run", "debug/echo"}, "", "", 2, "text"},
		{[]string{"run", "main", "hello"}, "", "", 2, "provider/model"},
		{[]string{"run", "../x", "hello"}, "", "", 2, "model name"},
		{[]string{"run", "lab/x", "hello"}, "", "", 1, "there is no provider lab"},
		{[]string{"run", "debug/x", "hello"}, "", "", 1, "has no model x"},
		{[]string{"run", "debug/script", "hello"}, "", "", 2, "script=PATH"},
		{[]string{"run", "debug/tools", "--log-level", "loud", "hello"}, "", "", 2, "loud"},
	} {
		stdout, stderr, code := outcome(t, program(t, c.args...), c.stdin)
		if stdout != c.stdout || code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit %d, want %d\n%s\nnot\n%s\n%s", c.args, code, c.code, stdout, c.stdout, stderr)
		}
		if !strings.HasSuffix(stderr, guarded) {
			t.Errorf("%q: %s", c.args, stderr)
		}
		if lines := strings.Count(strings.TrimSuffix(stderr, guarded), "\n"); code == 0 && lines > 0 || lines > 2 {
			t.Errorf("%q: says too much: %s", c.args, stderr)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"", 0, "USAGE"}, {"--help", 0, "model socket"}, {"--version", 0, "ctxmodel version"}, {"serve --help", 0, "--idle"}, {"run --help", 0, "INPUT"},
		{"fly", 2, `unknown command "fly"`}, {"run", 2, "takes a model"}, {"serve x", 2, "takes no arguments"}, {"serve --nonsense", 2, "nonsense"},
		{"serve --idle -3s", 2, "negative"}, {"serve --fd 0", 2, "is not 3 or more"}, {"serve --fd 99", 2, "is not a connection"}, {"serve --log-level loud", 2, "loud"},
	} {
		stdout, stderr, code := outcome(t, program(t, strings.Fields(c.args)...), "")
		if code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("ctxmodel %s: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
	}
}

func TestArrange(t *testing.T) {
	for in, want := range map[string]string{
		"run debug/echo hi":             "run -- debug/echo hi",
		"run debug/echo --raw -":        "run --raw -- debug/echo -",
		"--root /t serve --fd 3":        "serve --root=/t --fd=3 --",
		"serve --idle=3s --config /c":   "serve --idle=3s --config=/c --",
		"run debug/echo -- --root":      "run -- debug/echo --root",
		"--help":                        "--help --",
		"serve --fd":                    "serve --fd --",
		"run --log-level debug m a b c": "run --log-level=debug -- m a b c",
	} {
		if d := cmp.Diff(want, strings.Join(arrange(strings.Fields(in)), " ")); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

// process is a running ctxmodel.
type process struct {
	*exec.Cmd
	t    *testing.T
	errs bytes.Buffer
	done chan error
}

func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, t: t, done: make(chan error, 1)}
	cmd.Stderr = &p.errs
	must(t, cmd.Start())
	go func() { p.done <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		p.wait()
	})
	return p
}

// wait waits for the end of the process and returns how it was.
func (p *process) wait() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(patience):
		p.t.Fatal("ctxmodel does not end")
		return nil
	}
}

// ends wants that the process ended well, with nothing left in it.
func (p *process) ends() {
	p.t.Helper()
	if err := p.wait(); err != nil || !strings.HasSuffix(p.errs.String(), guarded) {
		p.t.Errorf("%v\n%s", err, p.errs.String())
	}
}

const hello = `{"op":"generate","version":1,"model":"debug/echo","messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}` + "\n"

// ask does one request and returns everything of the answer.
func ask(t *testing.T, c *net.UnixConn, line string) string {
	t.Helper()
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	_, err := c.Write([]byte(line))
	must(t, err)
	// The answer ends with done; then we hang up.
	var all strings.Builder
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		all.WriteString(line)
		if err != nil || strings.Contains(line, `"done"`) {
			return all.String()
		}
	}
}

// pair starts ctxmodel at the other end of a socketpair, with no environment.
func pair(t *testing.T, args ...string) (*process, *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	theirs := os.NewFile(uintptr(fds[1]), "theirs")
	defer theirs.Close()
	ours := os.NewFile(uintptr(fds[0]), "ours")
	defer ours.Close()
	c, err := net.FileConn(ours)
	must(t, err)
	dir := t.TempDir()
	cmd := program(t, append([]string{"serve", "--fd", "3", "--root", dir, "--config", dir, "--secrets", dir}, args...)...)
	cmd.Env = []string{} // as ctxd starts it
	cmd.ExtraFiles = []*os.File{theirs}
	return start(t, cmd), c.(*net.UnixConn)
}

func TestConnectionByDescriptor(t *testing.T) {
	p, c := pair(t)
	if got := ask(t, c, hello); got != frames {
		t.Error(got)
	}
	p.ends()
	p, c = pair(t)
	must(t, c.Close()) // who asks nothing
	p.ends()

	null, err := os.Open(os.DevNull)
	must(t, err)
	defer null.Close()
	cmd := program(t, "serve", "--fd", "3")
	cmd.ExtraFiles = []*os.File{null}
	if _, stderr, code := outcome(t, cmd, ""); code != 2 || !strings.Contains(stderr, "--fd 3") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// script makes a request of debug/script that plays these lines.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(path, []byte(`{"block":"a"}`+"\n"+strings.Join(lines, "\n")+"\n"), 0o600))
	return strings.Replace(strings.Replace(hello, "echo", "script", 1), `"version"`, `"options":{"script":"`+path+`"},"version"`, 1)
}

func TestFaults(t *testing.T) {
	begun := `{"type":"start","model":"debug/script"}` + "\n" + `{"type":"delta","text":"a"}` + "\n"
	p, c := pair(t)
	if got := ask(t, c, script(t, `{"type":"delta","text":"a"}`, `{"fault":"kill"}`)); got != begun {
		t.Error(got)
	}
	var exit *exec.ExitError
	if err := p.wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Error(err)
	}
	p, c = pair(t)
	if got := ask(t, c, script(t, `{"type":"delta","text":"a"}`, `{"fault":"drop"}`)); got != begun {
		t.Error(got)
	}
	p.ends()

	// Hanging up ends the process, and so does a signal, which is told.
	p, c = pair(t)
	_, err := c.Write([]byte(script(t, `{"type":"delta","text":"a"}`, `{"fault":"hang"}`)))
	must(t, err)
	r := bufio.NewReader(c)
	for range 2 {
		_, err := r.ReadString('\n')
		must(t, err)
	}
	must(t, c.Close())
	p.ends()
	p, c = pair(t)
	_, err = c.Write([]byte(script(t, `{"type":"delta","text":"a"}`, `{"fault":"hang"}`)))
	must(t, err)
	r = bufio.NewReader(c)
	for range 2 {
		_, err := r.ReadString('\n')
		must(t, err)
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), `"class":"interrupted"`) || !strings.HasSuffix(string(rest), `{"type":"done","status":"error"}`+"\n") {
		t.Errorf("%s, %v", rest, err)
	}
	c.Close()
	p.ends()
}

func TestInterruptedRun(t *testing.T) {
	request := script(t, `{"type":"delta","text":"a"}`, `{"fault":"hang"}`)
	cmd := program(t, "run", "debug/script")
	out, in, err := os.Pipe()
	must(t, err)
	defer out.Close()
	cmd.Stdin, cmd.Stdout = strings.NewReader(request), in
	p := start(t, cmd)
	in.Close()
	r := bufio.NewReader(out)
	for range 2 {
		_, err := r.ReadString('\n')
		must(t, err)
	}
	must(t, p.Process.Signal(syscall.SIGINT))
	if _, err := io.ReadAll(r); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := p.wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("%v\n%s", err, p.errs.String())
	}
}

func TestPassedSocket(t *testing.T) {
	socket := filepath.Join(short(t), "model.sock")
	l, err := unixsock.Listen(socket, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	must(t, err)
	defer l.Close()
	for _, idle := range []string{"1ms", "1h"} {
		f, err := l.File()
		must(t, err)
		cmd := program(t, "serve", "--idle", idle)
		cmd.Env = append(cmd.Env, "LISTEN_FDS=1", "LISTEN_FDNAMES=ctxmodel.socket")
		cmd.ExtraFiles = []*os.File{f}
		// A client that is there before the server waits for it.
		c, err := unixsock.Dial(context.Background(), socket)
		must(t, err)
		p := start(t, cmd)
		f.Close()
		if got := ask(t, c, hello); got != frames {
			t.Error(got)
		}
		if idle == "1h" {
			must(t, p.Process.Signal(syscall.SIGTERM))
		}
		p.ends()
		if _, err := os.Lstat(socket); err != nil {
			t.Errorf("the socket of somebody else is gone: %v", err)
		}
	}
}

// short is a directory whose path leaves room for a socket's.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ctxmodel")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestOwnSocket(t *testing.T) {
	dir := short(t)
	root := filepath.Join(dir, "tree")
	runtime := filepath.Join(dir, "run")
	must(t, os.Mkdir(runtime, 0o700))
	if _, stderr, code := outcome(t, program(t, "serve", "--root", root), ""); code != 1 || !strings.Contains(stderr, "is not a tree") {
		t.Errorf("without a tree: exit %d, %s", code, stderr)
	}
	must(t, os.MkdirAll(filepath.Join(root, "agent"), 0o700))
	must(t, os.WriteFile(filepath.Join(root, "status"), nil, 0o600))
	layout := paths.New(paths.Env{RuntimeDir: runtime, UID: os.Geteuid()}, root)
	t.Cleanup(func() { os.RemoveAll(layout.Runtime) })
	serve := func() *exec.Cmd {
		cmd := program(t, "serve", "--root", root)
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+runtime)
		return cmd
	}
	cmd := serve()
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	r := bufio.NewReader(stderr)
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, `"serving"`) {
		t.Fatalf("%s, %v", line, err)
	}
	st, err := os.Lstat(layout.ModelSocket())
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
	c, err := unixsock.Dial(context.Background(), layout.ModelSocket())
	must(t, err)
	if got := ask(t, c, hello); got != frames {
		t.Error(got)
	}
	if _, said, code := outcome(t, serve(), ""); code != 1 || !strings.Contains(said, "another process listens") {
		t.Errorf("a second one: exit %d, %s", code, said)
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(r)
	must(t, err)
	if err := cmd.Wait(); err != nil || !strings.HasSuffix(string(rest), guarded) {
		t.Errorf("%v\n%s", err, rest)
	}
	if strings.Contains(string(rest), "hello") {
		t.Errorf("the log says what was said: %s", rest)
	}
	if _, err := unixsock.Dial(context.Background(), layout.ModelSocket()); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("after the end: %v", err)
	}
}

func TestFailureIsTheExitCode(t *testing.T) {
	f := modelwire.Fail(errdefs.Denied, modelwire.PhaseProvider, modelwire.ClassAuth, "no")
	path := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(path, []byte(`{"block":"a"}`+"\n"+`{"fail":{"code":"EACCES","phase":"provider","class":"auth","message":"no"}}`+"\n"), 0o600))
	request := `{"options":{"script":"` + path + `"},"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`
	stdout, stderr, code := outcome(t, program(t, "run", "debug/script"), request)
	if code != f.Code.Exit() || !strings.Contains(stderr, "ctxmodel: no\n") || !strings.Contains(stdout, `"status":"error"`) {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
}
