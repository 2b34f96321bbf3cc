package terminal

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	resource "cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/tree"
)

// tool is a ctxtool that can do the entry step.
var tool string

// TestMain: in a sandbox, under the name of ctxterm, this program stands in for
// it; as "launch" it is a launcher.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ctxterm" {
		os.Exit(standIn(os.Args[1:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		os.Exit(launch(os.Args[2:]))
	}
	syscall.Umask(0o022) // what tests write is to be trusted
	dir, err := os.MkdirTemp("", "terminal-")
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

// standIn is as much of ctxterm as a launcher sees. What it does besides, the
// workspace says: the file mode; the FIFO end, which says the exit code.
func standIn(args []string) int {
	mode, _ := os.ReadFile("mode")
	switch string(mode) {
	case "die":
		fmt.Fprintln(os.Stderr, "first words\nno terminal today")
		return 3
	case "touch":
		fmt.Fprintln(os.Stderr, os.WriteFile("touched", nil, 0o600))
	case "mute":
		select {}
	}
	environ, _ := os.ReadFile("/proc/self/environ")
	cwd, _ := os.Getwd()
	if err := os.WriteFile("/proc/self/fd/4/seen", []byte(strings.Join(args, " ")+"\n"+cwd+"\n"+string(environ)), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ln, err := net.FileListener(os.NewFile(3, "socket"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ended := make(chan int, 2)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answer(c, string(mode))
		}
	}()
	go func() {
		if text, err := os.ReadFile("end"); err == nil {
			code, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			ended <- code
		}
	}()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	go func() { <-asked; ended <- 7 }()
	return <-ended
}

func answer(c net.Conn, mode string) {
	defer c.Close()
	line, err := bufio.NewReader(c).ReadBytes('\n')
	if err != nil {
		return
	}
	request, err := termwire.DecodeRequest(line)
	if err != nil {
		return
	}
	var f termwire.Frame = &termwire.Hello{Protocol: termwire.Protocol, Mode: request.Op(), Size: termwire.DefaultSize}
	if mode == "refuse" {
		f = &termwire.Error{Code: "EACCES", Message: "not you"}
	}
	if text, err := termwire.MarshalFrame(f); err == nil {
		c.Write(text)
	}
}

// world is a tree with an agent, and a workspace.
type world struct {
	t       testing.TB
	layout  paths.Layout
	ws, dir string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldAt(t, t.TempDir())
}

func newWorldAt(t testing.TB, dir string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, ws: filepath.Join(dir, "ws")}
	w.layout = layoutAt(dir)
	for _, d := range []string{w.ws, filepath.Join(dir, "run")} {
		w.ok(os.MkdirAll(d, 0o700))
	}
	_, err := tree.Init(w.layout, nil)
	w.ok(err)
	w.ok(tree.NewAgent(w.layout, tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Model: "debug/echo"}))
	w.ok(rundir.Ensure(w.layout))
	return w
}

// layoutAt is a user's layout, for root too: what is tested is the caller's own.
func layoutAt(dir string) paths.Layout {
	return paths.New(paths.Env{UID: 1, Home: dir, RuntimeDir: filepath.Join(dir, "run")}, filepath.Join(dir, "tree"))
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// mode says what the stand-in of ctxterm does.
func (w *world) mode(m string) { w.ok(os.WriteFile(filepath.Join(w.ws, "mode"), []byte(m), 0o600)) }

// ending makes the FIFO by which the stand-in is told to end.
func (w *world) ending() (end func(code string)) {
	path := filepath.Join(w.ws, "end")
	w.ok(syscall.Mkfifo(path, 0o600))
	return func(code string) { w.ok(os.WriteFile(path, []byte(code), 0)) }
}

// config is a terminal of this world. What the stand-in says reaches out.
func (w *world) config(out *bytes.Buffer) Config {
	self, err := os.Executable()
	w.ok(err)
	return Config{
		Tools:   &toolrun.Runner{Layout: w.layout, Agent: "coder", Ctxtool: tool, Tsh: tool},
		Session: "work",
		Sandbox: toolrun.Terminal{Workspace: w.ws},
		Ctxterm: self, Stderr: out, Log: log.Discard(), Supervisor: "direct", Emit: true,
	}
}

func (w *world) place() resource.Place {
	return resource.Place{Layout: w.layout, Owner: asuser.Self(), Agent: "coder", Session: "work"}
}

func (w *world) socket() string { return w.layout.TerminalSocket("coder", "work") }
func (w *world) link() string   { return w.layout.TerminalLink(uint32(os.Geteuid()), "coder", "work") }

// outcome is how a Run ended.
type outcome struct {
	exit int
	err  error
}

// start runs a terminal and returns once it is ready. It ends with the test.
func (w *world) start(ctx context.Context, cfg Config) <-chan outcome {
	w.t.Helper()
	ready, end := make(chan struct{}), make(chan outcome, 1)
	cfg.Ready = func() error { close(ready); return nil }
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		exit, err := Run(ctx, cfg)
		end <- outcome{exit, err}
	}()
	select {
	case <-ready:
	case o := <-end:
		w.t.Fatalf("not started: %v", o.err)
	}
	return end
}

// listing is everything below the world, with modes and what links lead to.
func (w *world) listing() string {
	w.t.Helper()
	var b strings.Builder
	w.ok(filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		to, _ := os.Readlink(path)
		fmt.Fprintln(&b, st.Mode(), path, to)
		if strings.HasPrefix(path, w.layout.Views+"/") || path == w.layout.Locks {
			return fs.SkipDir // a prepared view stays for the next sandbox
		}
		return nil
	}))
	return b.String()
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// launch is a launcher as a process of its own: a directory, the ctxtool. It
// says when it is ready, and ends with its standard input.
func launch(args []string) int {
	tool = args[1]
	w := &world{t: &failing{}, dir: args[0], ws: filepath.Join(args[0], "ws"), layout: layoutAt(args[0])}
	cfg := w.config(&bytes.Buffer{})
	cfg.Ready = func() error {
		_, err := fmt.Println("ready")
		return err
	}
	exit, err := Run(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return exit
}

// failing is the testing.TB of a launcher of its own.
type failing struct{ testing.TB }

func (*failing) Helper()        {}
func (*failing) Fatal(v ...any) { panic(fmt.Sprint(v...)) }
