package capsock

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

// patience bounds everything that has to happen.
const patience = 60 * time.Second

// TestMain is the helper programs too, which a test runs inside and outside.
func TestMain(m *testing.M) {
	switch os.Getenv("CAPSOCK_HELPER") {
	case "":
		os.Exit(m.Run())
	case "send": // what is on standard input, and then what comes
		conn, err := net.Dial("unix", os.Getenv("SOCKET"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		io.Copy(conn, os.Stdin)
		io.Copy(os.Stdout, conn)
	case "half": // the same, and says that nothing more comes
		conn, err := net.Dial("unix", os.Getenv("SOCKET"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		io.Copy(conn, os.Stdin)
		conn.(*net.UnixConn).CloseWrite()
		io.Copy(os.Stdout, conn)
	case "leave": // connects, and leaves the connection to a child
		conn, err := net.Dial("unix", os.Getenv("SOCKET"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		f, err := conn.(*net.UnixConn).File()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		child := exec.Command("/bin/sh", "-c", `cat "$GO"; cat "$FRAME" >&3; cat <&3`)
		child.Stdout, child.ExtraFiles = os.Stdout, []*os.File{f}
		if err := child.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "crowd": // connections that say nothing; then how they end
		var conns []net.Conn
		for range 3 * libctx.MaxCapConnections {
			if conn, err := net.Dial("unix", os.Getenv("SOCKET")); err == nil {
				conns = append(conns, conn)
			}
		}
		busy := 0
		for _, conn := range conns[libctx.MaxCapConnections:] {
			reply, _ := io.ReadAll(conn)
			if bytes.Contains(reply, []byte(`"EAGAIN"`)) {
				busy++
			}
		}
		fmt.Println(len(conns), busy)
	}
}

// world is a tree with the agents coder and other, and coder's keeper.
type world struct {
	t      *testing.T
	layout paths.Layout
	keeper *Keeper
	n      int
	frames []wire.Frame // that were recorded, of runs one after the other
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l := paths.New(paths.Env{UID: os.Geteuid(), Home: t.TempDir(), RuntimeDir: t.TempDir()}, filepath.Join(t.TempDir(), "tree"))
	l.System = false
	l.Runtime = filepath.Join(t.TempDir(), "cortexfs", "key")
	l.Locks = filepath.Join(l.Runtime, "lock")
	if _, err := tree.Init(l, nil); err != nil {
		t.Fatal(err)
	}
	must(t, rundir.Ensure(l))
	for _, name := range []libctx.Agent{"coder", "other"} {
		must(t, tree.NewAgent(l, tree.AgentSpec{
			Name: name, Model: "debug/echo", Owner: asuser.Self(), Tools: []libctx.Tool{"agent.update", "bash"}, System: []byte("as it was\n"),
		}))
	}
	w := &world{t: t, layout: l, keeper: New(Config{Layout: l, Agent: "coder", Owner: asuser.Self(), Log: log.Discard()})}
	t.Cleanup(w.keeper.Close)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run opens the capability of a new run.
func (w *world) run() *Capability {
	w.t.Helper()
	c, err := w.keeper.Open("default", libctx.NewRun(), func(f ...wire.Frame) error {
		w.frames = append(w.frames, f...)
		return nil
	})
	must(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// request is an update that is right in every respect, under an id of its own.
func (w *world) request(c *Capability) capwire.Request {
	w.n++
	text := fmt.Sprintf("the %dth text\n", w.n)
	return capwire.Request{
		Op: capwire.Update, ID: fmt.Sprintf("id-%d", w.n), Agent: "coder", Session: c.session, Run: c.run, Control: "system.md", Content: &text,
	}
}

// control is the text of a control file of coder.
func (w *world) control(file string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.layout.Control("coder"), file))
	must(w.t, err)
	return string(text)
}

// set writes a control file of coder.
func (w *world) set(file, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.layout.Control("coder"), file), []byte(text), 0o644))
}

// box is a process that stands for the first one of a sandbox: a shell that does
// what it is told.
type box struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, cmd: exec.Command("/bin/sh", "-s")}
	b.cmd.Env = append(os.Environ(), "EXE="+os.Args[0])
	var err error
	b.in, err = b.cmd.StdinPipe()
	must(t, err)
	out, err := b.cmd.StdoutPipe()
	must(t, err)
	b.out = bufio.NewReader(out)
	must(t, b.cmd.Start())
	t.Cleanup(b.end)
	return b
}

func (b *box) end() {
	b.cmd.Process.Kill()
	b.in.Close()
	b.cmd.Wait()
}

func (b *box) id() procid.ID {
	b.t.Helper()
	id, err := procid.Of(b.cmd.Process.Pid)
	must(b.t, err)
	return id
}

// begin has the shell do something, and until reads what it says up to a line.
func (b *box) begin(script string) {
	b.t.Helper()
	_, err := io.WriteString(b.in, script+"\n")
	must(b.t, err)
}

func (b *box) until(end string) string {
	b.t.Helper()
	var said strings.Builder
	for {
		line, err := b.out.ReadString('\n')
		if err != nil {
			b.t.Fatalf("%v after %q", err, said.String())
		}
		if line == end+"\n" {
			return said.String()
		}
		said.WriteString(line)
	}
}

// send sends bytes to a socket from a process below the box, and returns what
// comes back.
func (b *box) send(socket string, frame []byte) string {
	b.t.Helper()
	return b.through("", socket, frame)
}

// through is send with something before the command.
func (b *box) through(before, socket string, frame []byte) string {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "frame")
	must(b.t, os.WriteFile(file, frame, 0o600))
	b.begin(fmt.Sprintf("export CAPSOCK_HELPER=send SOCKET='%s'; %s \"$EXE\" <'%s'; echo END", socket, before, file))
	return b.until("END")
}

// ask sends a request from inside, and returns the kind of the refusal, "" if it
// was done.
func (b *box) ask(c *Capability, q capwire.Request) errdefs.Kind {
	b.t.Helper()
	frame, err := wire.Marshal(q)
	must(b.t, err)
	return errdefs.KindOf(q.DecodeReply([]byte(strings.TrimSuffix(b.send(c.Path(), frame), "\n"))))
}

// outside is ask from this process, which is in no box.
func outside(t *testing.T, path string, q capwire.Request) errdefs.Kind {
	t.Helper()
	conn, err := net.Dial("unix", path)
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	frame, err := wire.Marshal(q)
	must(t, err)
	conn.Write(frame) // it may be closed by now
	reply, err := io.ReadAll(conn)
	if err != nil && len(reply) == 0 {
		t.Fatal(err)
	}
	return errdefs.KindOf(q.DecodeReply(bytes.TrimSuffix(reply, []byte("\n"))))
}

// inside is a run with one registered box.
func (w *world) inside() (*Capability, *box) {
	w.t.Helper()
	c, b := w.run(), newBox(w.t)
	must(w.t, c.Register(b.id(), "bash"))
	return c, b
}
