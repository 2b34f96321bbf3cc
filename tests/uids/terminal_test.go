package uids

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/tests/internal/world"
)

// TestTerminalOfTheMachine: in a tree of root the owner of an agent starts its
// terminal with no rights but his own; nobody else gets in, root neither.
func TestTerminalOfTheMachine(t *testing.T) {
	root, a, b := system(t)
	for _, u := range []*world.World{a, b} {
		u.Runtime = u.Dir + "/run-" + strconv.Itoa(u.UID)
		u.Mkdir(u.Runtime, 0o700)
		u.Layout = paths.New(paths.Env{RuntimeDir: u.Runtime, Home: u.Home, UID: u.UID}, u.Root)
	}
	a.MustCtx("agent", "send", "alice", "say hello") // its server makes her home in the tree
	views := func() int {
		all, err := os.ReadDir(filepath.Join(root.Root, ".view/alice"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := views()

	report := filepath.Join(a.Runtime, "report")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: report})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Chown(report, alice, alice); err != nil {
		t.Fatal(err)
	}
	cmd := a.Command("ctxd", "terminal", "--session", "work", "--workspace", a.Workspace, "--report", report, "alice")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	buf := make([]byte, 64<<10)
	c.SetReadDeadline(time.Now().Add(world.Patience))
	n, err := c.Read(buf)
	if err != nil {
		t.Fatalf("%v; %s", err, said.String())
	}
	var told struct {
		Ready bool `json:"ready"`
		PID   int  `json:"pid"`
	}
	if err := json.Unmarshal(buf[:n], &told); err != nil || !told.Ready || told.PID != cmd.Process.Pid {
		t.Fatalf("told %s, %v", buf[:n], err)
	}

	socket := a.Layout.TerminalSocket("alice", "work")
	if f, r := dial(a, socket, "hello", `{"op":"watch"}`); len(f) != 1 || f[0].Type() != "hello" {
		t.Errorf("alice got %s, %s", world.JSON(f), r.Err)
	}
	for dir := socket; dir != a.Dir; dir = filepath.Dir(dir) { // even if the way there were open
		mode := os.FileMode(0o711)
		if dir == socket {
			mode = 0o666
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range []*world.World{b, root} {
		for _, op := range []string{`{"op":"watch"}`, `{"op":"attach","cols":80,"rows":24}`, `{"op":"emit"}`} {
			if f, _ := dial(u, socket, "", op); len(f) > 0 && f[0].Type() != "error" {
				t.Errorf("uid %d with %s got %s", u.UID, op, world.JSON(f))
			}
		}
	}
	private(t, a.Layout.TerminalResource(alice, "alice", "work"), alice)
	if now := views(); now != before {
		t.Errorf("%d views of the server's, %d before", now, before)
	}
	for _, pid := range a.Inside() {
		if uid := owner(t, pid); uid != alice {
			t.Errorf("process %d in a sandbox is of uid %d", pid, uid)
		}
	}

	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is still there")
	}
	state := a.Read(a.Layout.TerminalResource(alice, "alice", "work") + "/state")
	if state != "exited\n" || cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() == 1 {
		t.Errorf("state %q, exit %v: %s", state, cmd.ProcessState, said.String())
	}

	// Another's agent is another's.
	if r := b.Run(b.Command("ctxd", "terminal", "--workspace", b.Workspace, "alice")); r.Code != 13 {
		t.Errorf("bob starts alice's: exit %d, %s", r.Code, r.Err)
	}
	if r := root.Run(root.Command("ctxd", "terminal", "--workspace", root.Workspace, "alice")); r.Code != 13 {
		t.Errorf("root starts alice's: exit %d, %s", r.Code, r.Err)
	}
}

// TestAnothersTerminal: of a user's own tree nobody else joins a terminal, root
// neither, and it is not said that there is none.
func TestAnothersTerminal(t *testing.T) {
	w := world.NewAs(t, alice)
	w.MustCtx("agent", "new", "coder", "--model", "debug/tools", "--tool", "bash")
	w.MustCtx("agent", "start", "--supervisor", "direct", "coder")
	if err := os.Chmod(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{0, bob} {
		other := *w
		other.UID, other.Home, other.Runtime = uid, w.Dir+"/home-"+strconv.Itoa(uid), w.Dir+"/run-"+strconv.Itoa(uid)
		other.Mkdir(other.Home, 0o700)
		other.Mkdir(other.Runtime, 0o700)
		for _, words := range [][]string{{"agent", "watch", "coder"}, {"terminal", "watch", "coder/default"}} {
			cmd := other.Command("ctx", append([]string{"--root", w.Root}, words...)...)
			cmd.Dir = "/"
			if r := other.Run(cmd); r.Code != 13 || strings.Contains(r.Err, "nothing listens") {
				t.Errorf("uid %d: %v: %+v", uid, words, r)
			}
		}
	}
	w.MustCtx("agent", "stop", "coder")
}

// owner is the effective uid of a process.
func owner(t *testing.T, pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return alice // it is gone
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "Uid:" {
			uid, err := strconv.Atoi(f[2])
			if err != nil {
				t.Error(err)
			}
			return uid
		}
	}
	return -1
}

// TestReceiptOfTheMachine: root's server of somebody's agent proves her terminal,
// shows calls in it as her, and stops it for whoever may; only she vouches for it.
func TestReceiptOfTheMachine(t *testing.T) {
	root, a, b := system(t)
	a.Runtime = a.Dir + "/run-" + strconv.Itoa(a.UID)
	a.Mkdir(a.Runtime, 0o700)
	a.Layout = paths.New(paths.Env{RuntimeDir: a.Runtime, Home: a.Home, UID: a.UID}, a.Root)
	a.MustCtx("agent", "send", "alice", "say hello") // its server makes her home in the tree
	a.MustCtx("agent", "start", "--supervisor", "direct", "--session", "work", "alice")
	resource := a.Layout.TerminalResource(alice, "alice", "work")
	var meta struct {
		Receipt json.RawMessage `json:"runtime_receipt"`
	}
	if err := json.Unmarshal([]byte(a.Read(resource+"/meta.json")), &meta); err != nil || meta.Receipt == nil {
		t.Fatalf("%s: %v", meta.Receipt, err)
	}
	line := world.JSON(map[string]any{"op": "receipt", "session": "work", "receipt": meta.Receipt})
	socket := filepath.Join(root.Root, "agent/alice.sock")
	if f, _ := dial(root, socket, "error", line); len(f) != 1 || f[0].Str("code") != "EACCES" {
		t.Errorf("root got %s", world.JSON(f))
	}
	if f, _ := dial(b, socket, "", line); len(f) > 0 && f[0].Type() != "error" {
		t.Errorf("bob got %s", world.JSON(f))
	}
	if f, _ := dial(a, socket, "accepted", line); len(f) != 1 || f[0].Str("op") != "receipt" {
		t.Errorf("alice got %s", world.JSON(f))
	}

	a.MustCtx("agent", "send", "--session", "work", "alice", "call fs.read {\"path\":\"README.md\"}\n--\nsay done")
	shown := []byte("README.md")
	a.Await(resource, func() bool {
		var all []byte
		text, _ := os.ReadFile(resource + "/events.jsonl")
		for line := range strings.Lines(string(text)) {
			var event struct {
				Data []byte `json:"data_b64"`
			}
			json.Unmarshal([]byte(line), &event) // the last one may be torn
			all = append(all, event.Data...)
		}
		return bytes.Contains(all, shown)
	})
	f, _ := dial(root, socket, "done", `{"op":"stop","agent":"alice","session":"work"}`)
	if last := world.Last(f); world.JSON(last["terminals"]) != `[{"outcome":"stopped","session":"work"}]` {
		t.Errorf("root's stop: %s", world.JSON(f))
	}
}
