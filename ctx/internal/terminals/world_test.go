package terminals

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// TestMain is the launcher too: this program is started as ctxd by the tests.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "ctxd" {
		os.Exit(launcher(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// launcher plays ctxd terminal, as PLAY says.
func launcher(args []string) int {
	end := make(chan os.Signal, 1)
	signal.Notify(end, unix.SIGTERM)
	words := map[string]string{}
	for i := 0; i+1 < len(args); i++ {
		words[args[i]] = args[i+1]
	}
	tell := func(r terminal.Report) {
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: words["--report"]})
		if err != nil {
			panic(err)
		}
		defer c.Close()
		if _, err := c.Write(r.Text()); err != nil {
			panic(err)
		}
	}
	agent := libctx.Agent(args[len(args)-1])
	l := paths.New(paths.Env{UID: os.Geteuid(), RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"), Home: os.Getenv("HOME")}, words["--root"])
	p := terminal.Place{Layout: l, Owner: asuser.Self(), Agent: agent, Session: libctx.Session(words["--session"])}
	switch os.Getenv("PLAY") {
	case "dies":
		fmt.Fprintln(os.Stderr, "first\nit broke")
		return 1
	case "refuses":
		tell(terminal.Failed(errdefs.New(errdefs.Invalid, "workspace: is a link").WithHint("name another")))
		return 2
	case "nonsense":
		tell(terminal.Report{})
	case "wrong":
		tell(terminal.Report{Ready: true, PID: 1})
	case "hangs":
	case "runs", "killed":
		d, err := p.Create(terminal.Meta{Cwd: "/workspace", Socket: l.TerminalSocket(agent, p.Session), Workspace: words["--workspace"]})
		if err != nil {
			panic(err)
		}
		d.Close()
		id, err := procid.Of(os.Getpid())
		boot, e := procid.Boot()
		line := id.Line(boot)
		err = errors.Join(err, e, os.MkdirAll(l.TerminalDir(agent, p.Session), 0o700),
			os.WriteFile(l.TerminalLock(agent, p.Session), []byte(line), 0o600), p.SetState(terminal.Running, nil))
		if err != nil {
			panic(err)
		}
		if _, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: l.TerminalSocket(agent, p.Session)}); err != nil {
			panic(err)
		}
		if os.Getenv("PLAY") == "killed" {
			if err := os.Symlink(l.TerminalSocket(agent, p.Session), l.TerminalLink(p.Owner.UID, agent, p.Session)); err != nil {
				panic(err)
			}
			unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		tell(terminal.Report{Ready: true, PID: os.Getpid()})
	}
	<-end
	return 0
}

// world is a tree with the agent coder, and a caller.
type world struct {
	*caller.Caller
	t          *testing.T
	out, errs  bytes.Buffer
	interrupts chan os.Signal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top, err := os.MkdirTemp("", "t") // short: sockets are below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	w := &world{t: t, interrupts: make(chan os.Signal, 1)}
	env := paths.Env{CTXRoot: filepath.Join(top, "tree"), Home: top, RuntimeDir: filepath.Join(top, "run"), UID: os.Geteuid()}
	bin := filepath.Join(top, "bin")
	exec := filepath.Join(top, "agent")
	self, err := os.Executable()
	err = errors.Join(err, os.Mkdir(env.RuntimeDir, 0o700), os.Mkdir(bin, 0o755), os.Mkdir(filepath.Join(top, "work"), 0o755),
		os.Symlink(self, filepath.Join(bin, "ctxd")), os.WriteFile(exec, []byte("#!/bin/sh\n"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	w.Caller = &caller.Caller{
		Printer: &output.Printer{Out: &w.out, Err: &w.errs}, In: &bytes.Buffer{}, Layout: paths.New(env, env.CTXRoot),
		Config: config.Config{
			Paths: env, Cwd: filepath.Join(top, "work"), Exe: filepath.Join(bin, "ctx"),
			Daemon: []string{"HOME=" + top, "XDG_RUNTIME_DIR=" + env.RuntimeDir},
		},
		Interrupts: func() (<-chan os.Signal, func()) { return w.interrupts, func() {} },
	}
	if _, err := tree.Init(w.Layout, nil); err != nil {
		t.Fatal(err)
	}
	spec := tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Exec: exec, Tools: []libctx.Tool{"fs.read"}}
	if err := tree.NewAgent(w.Layout, spec); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) plays(what string) { w.Config.Daemon = append(w.Config.Daemon, "PLAY="+what) }

func (w *world) place(a libctx.Agent, s libctx.Session) terminal.Place {
	return terminal.Place{Layout: w.Layout, Owner: asuser.Self(), Agent: a, Session: s}
}

// kept makes the resource of a terminal.
func (w *world) kept(a libctx.Agent, s libctx.Session, state terminal.State, with func(*terminal.Meta)) terminal.Place {
	w.t.Helper()
	p := w.place(a, s)
	d, err := p.Create(terminal.Meta{Cwd: "/workspace", Command: []string{"/ctx/bin/tsh"}, Size: "90x30", Supervisor: "direct", Workspace: "/w"})
	if err != nil {
		w.t.Fatal(err)
	}
	d.Close()
	if err := p.SetState(state, with); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// agent serves coder's socket and answers one request.
func (w *world) agent(answer func(wire.Request) wire.Frame) {
	w.t.Helper()
	if err := rundir.Ensure(w.Layout); err != nil {
		w.t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: w.Layout.Socket("coder")})
	if err == nil {
		err = os.Symlink(w.Layout.Socket("coder"), w.Layout.AgentLink("coder"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		line, err := wire.NewLines(c, libctx.MaxFrame).Next()
		if err != nil {
			w.t.Error(err)
			return
		}
		r, err := wire.DecodeRequest(line)
		if err != nil {
			w.t.Error(err)
			return
		}
		text, err := wire.MarshalFrame(answer(r))
		if err == nil {
			_, err = c.Write(text)
		}
		if err != nil {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(func() {
		l.Close()
		<-over
	})
}

// serve answers one client of a terminal with these frames and keeps the
// connection until it is called.
func serve(t *testing.T, path string, frames ...termwire.Frame) (stop func()) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	end, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for _, f := range frames {
			line, err := termwire.MarshalFrame(f)
			if err == nil {
				_, err = c.Write(line)
			}
			if err != nil {
				t.Error(err)
			}
		}
		<-end
	}()
	return func() {
		close(end)
		l.Close()
		<-over
	}
}
