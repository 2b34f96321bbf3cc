package receipt

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/tree"
	"golang.org/x/sys/unix"
)

// TestMain: as "stand-in" this program is a terminal with its launcher.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "stand-in" {
		if err := standIn(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// standIn listens at a socket, tells by a file beside it, and answers like a
// terminal until it is ended.
func standIn(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.WriteFile(socket+".ready", nil, 0o600); err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			line, err := bufio.NewReader(c).ReadBytes('\n')
			if err != nil {
				return
			}
			if q, err := termwire.DecodeRequest(line); err == nil {
				hello, _ := termwire.MarshalFrame(&termwire.Hello{Protocol: termwire.Protocol, Mode: q.Op(), Size: termwire.DefaultSize})
				c.Write(hello)
			}
		}()
	}
}

// world is a tree with an agent.
type world struct {
	*testing.T
	layout paths.Layout
	keeper *Keeper
	direct supervise.Supervisor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "r") // short, for paths of sockets
	w := &world{T: t}
	w.ok(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	// A user's layout, for root too: what is tested is the caller's own.
	w.layout = paths.New(paths.Env{UID: 1, Home: dir, RuntimeDir: filepath.Join(dir, "run")}, filepath.Join(dir, "tree"))
	w.ok(os.Mkdir(filepath.Join(dir, "run"), 0o700))
	_, err = tree.Init(w.layout, nil)
	w.ok(err)
	w.ok(tree.NewAgent(w.layout, tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Model: "debug/echo"}))
	w.ok(rundir.Ensure(w.layout))
	w.keeper = &Keeper{Layout: w.layout, Agent: "coder", Owner: asuser.Self()}
	w.direct, err = supervise.New(t.Context(), supervise.Direct, w.layout, uint32(os.Geteuid()))
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// start starts a terminal and returns its receipt.
func (w *world) start(s libctx.Session) terminal.Receipt {
	w.Helper()
	dir, err := w.keeper.place(s).Create(terminal.Meta{Command: []string{"tsh"}, Emit: true})
	w.ok(err)
	w.ok(dir.Close())
	w.ok(w.keeper.place(s).SetState(terminal.Running, nil))
	socket := w.layout.TerminalSocket("coder", s)
	w.ok(os.MkdirAll(filepath.Dir(socket), 0o700))
	os.Remove(socket)
	os.Remove(socket + ".ready")
	self, err := os.Executable()
	w.ok(err)
	i, err := w.direct.Start(w.Context(), supervise.Spec{
		Unit: supervise.Unit(w.layout, "coder", s), Argv: []string{self, "stand-in", socket},
		Log: filepath.Join(filepath.Dir(socket), "log"),
	})
	w.ok(err)
	w.Cleanup(func() { w.direct.Stop(context.Background(), i) })
	w.await(socket+".ready", i.PID)

	var control, st unix.Stat_t
	w.ok(unix.Stat(w.layout.Control("coder"), &control))
	w.ok(unix.Stat(socket, &st))
	who, err := procid.Identity(i.PID)
	w.ok(err)
	return terminal.Receipt{
		Version: terminal.ReceiptVersion,
		Control: terminal.Object{Dev: control.Dev, Ino: control.Ino},
		Terminal: terminal.Launch{
			Session: s, Supervisor: i.Supervisor, Unit: i.Unit, Invocation: i.Invocation, PID: i.PID, Start: i.Start, Boot: i.Boot,
			Socket:   terminal.Socket{Path: socket, Dev: st.Dev, Ino: st.Ino},
			Identity: terminal.Identity{UID: who.UID, GID: who.GID, Groups: who.Groups},
		},
	}
}

// await waits until a file is there, or its maker is gone.
func (w *world) await(path string, pid int) {
	w.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	w.ok(err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_CREATE|unix.IN_MOVED_TO)
	w.ok(err)
	process, err := unix.PidfdOpen(pid, 0)
	w.ok(err)
	defer unix.Close(process)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(process), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			w.Fatal(err)
		}
		if fds[1].Revents != 0 {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "log"))
			w.Fatalf("the stand-in ended: %s", text)
		}
		if fds[0].Revents != 0 {
			unix.Read(fd, make([]byte, 4096))
		}
	}
}

func (w *world) accept(s libctx.Session, r terminal.Receipt) error {
	w.Helper()
	text, err := r.Text()
	w.ok(err)
	_, err = w.keeper.Accept(w.Context(), s, text)
	return err
}

// written is what stands in the two meta.json.
func (w *world) written(s libctx.Session) string {
	w.Helper()
	var all []string
	for _, dir := range []string{w.layout.TerminalResource(uint32(os.Geteuid()), "coder", s), w.layout.Control("coder")} {
		text, _ := os.ReadFile(filepath.Join(dir, terminal.MetaFile))
		all = append(all, string(text))
	}
	return strings.Join(slices.Clip(all), "\x00")
}
