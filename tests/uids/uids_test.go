// Package uids drives the suite with several users: a daemon of an ordinary
// user whom another one bothers, and a daemon of root for agents of many. It
// needs root, so `make test` includes it only there.
package uids

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// Users without an account and without a home.
const (
	alice = 60001
	bob   = 60002
)

func TestMain(m *testing.M) { world.Main(m) }

// as is the same world for another user, with a workspace of its own.
func as(w *world.World, uid int) *world.World {
	u := *w
	u.UID = uid
	u.Home = w.Dir + "/no-such-home"
	u.Workspace = w.Dir + "/work-" + strconv.Itoa(uid)
	if _, err := os.Stat(u.Workspace); err != nil {
		u.Mkdir(u.Workspace, 0o700)
		u.Write(u.Workspace+"/README.md", "one\ntwo\nthree\n")
	}
	return &u
}

// client is a program of a user that connects, writes lines, and prints what it
// reads until the end or, with a line to end it, that kind of frame.
const client = `
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.settimeout(60)
s.connect(sys.argv[1])
try:
    for line in sys.argv[3:]:
        s.sendall(line.encode() + b"\n")
except BrokenPipeError: # refused already; the answer is there to be read
    pass
try:
    for line in s.makefile("r"):
        sys.stdout.write(line)
        if sys.argv[2] and '"type":"' + sys.argv[2] + '"' in line:
            break
except ConnectionResetError: # closed over what was sent and not read
    pass
`

// dial lets the world's user connect to an agent's socket and returns the
// frames it got.
func dial(w *world.World, socket, until string, lines ...string) ([]world.Frame, world.Result) {
	w.T.Helper()
	cmd := w.Command("ctx")
	cmd.Path = "/usr/bin/python3"
	cmd.Args = append([]string{"python3", "-c", client, socket, until}, lines...)
	r := w.Run(cmd)
	var frames []world.Frame
	for line := range strings.Lines(r.Out) {
		var f world.Frame
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			w.T.Fatalf("%q: %v", line, err)
		}
		frames = append(frames, f)
	}
	return frames, r
}

func send(id, session, workspace, input string) string {
	return world.JSON(map[string]any{"op": "send", "id": id, "session": session, "workspace": workspace, "input": input})
}

// TestStranger: the kernel's word decides who speaks, whatever the files say.
func TestStranger(t *testing.T) {
	w := world.NewAs(t, alice)
	w.Puppet("a")
	w.MustCtx("agent", "send", "a", "say hello")
	run := w.Dial("a") // root may: it is no stranger
	run.Send(send("m", "s", w.Workspace, "sleep"))
	run.Until("delta")

	socket := w.Layout.Socket("a")
	for dir := socket; dir != w.Dir; dir = filepath.Dir(dir) {
		mode := fs.FileMode(0o711)
		if dir == socket {
			mode = 0o666
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(w.Dir, 0o755)
	stranger := as(w, bob)
	for _, lines := range [][]string{
		nil, // refused before a byte is read
		{`{"op":"ping"}`}, {`{"op":"status"}`}, {`{"op":"stop","agent":"a"}`}, {`{"op":"cancel","id":"m"}`}, {`{"op":"resume","session":"s"}`},
		{send("x", "s", stranger.Workspace, "say no")},
	} {
		f, r := dial(stranger, socket, "", lines...)
		if r.Code != 0 {
			t.Errorf("%v: %s", lines, r.Err)
		}
		if len(f) != 1 || f[0].Type() != "error" || f[0].Str("code") != "EACCES" {
			t.Errorf("a stranger with %v got %s", lines, world.JSON(f))
		}
	}
	owner := *w
	if f, _ := dial(&owner, socket, "pong", `{"op":"ping"}`); len(f) != 1 || f[0].Type() != "pong" {
		t.Errorf("the owner got %s", world.JSON(f))
	}
	w.Dial("a").Ask(`{"op":"cancel","id":"m"}`, "accepted")
	if d := world.Last(run.Until("done")); d.Str("status") != "cancelled" {
		t.Errorf("the run that was going on: %v", d)
	}
	if text := w.Read(w.Session("a", "s") + "/messages.jsonl"); strings.Contains(text, "say no") {
		t.Error("a stranger's message is recorded")
	}
}

// system makes a world of root with an agent of alice and one of bob, served
// by a daemon whose umask is 0.
func system(t *testing.T) (root, a, b *world.World) {
	t.Helper()
	w := world.New(t)
	if err := os.Chmod(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, uid := range map[libctx.Agent]uint32{"alice": alice, "bob": bob} {
		err := tree.NewAgent(w.Layout, tree.AgentSpec{
			Name: name, Owner: asuser.Identity{UID: uid, GID: uid}, Exec: filepath.Join(w.Bin, "puppet"),
			Tools: []libctx.Tool{"shell.exec", "fs.read"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := w.Command("ctxd")
	cmd.Args = []string{"sh", "-c", `umask 000; exec "$0" serve`, cmd.Path}
	cmd.Path = "/bin/sh"
	if err := os.MkdirAll(w.Layout.Runtime, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(w.Layout.ServeLog())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	for _, name := range []string{"alice", "bob"} {
		w.AwaitExists(w.Root + "/agent/" + name + ".sock")
	}
	return w, as(w, alice), as(w, bob)
}

// TestSystem: one daemon of root serves agents of two users, each as that user.
func TestSystem(t *testing.T) {
	root, a, b := system(t)
	if out := a.MustCtx("agent", "send", "alice", "say hello"); out != "hello\n" {
		t.Errorf("alice to her agent: %q", out)
	}
	for _, u := range []*world.World{a, b} {
		name := map[int]string{alice: "alice", bob: "bob"}[u.UID]
		out := u.MustCtx("agent", "tsh", name, "--", "shell.exec", "id -u; id -g; id -G; touch made; touch /home/agent/data/made; grep Cap /proc/self/status")
		id := strconv.Itoa(u.UID)
		if want := strings.Repeat(id+"\n", 3); !strings.HasPrefix(out, want) {
			t.Errorf("%s works as %q", name, out)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Cap") && !strings.HasPrefix(line, "CapBnd") && strings.Trim(line[7:], " 0\t\n") != "" {
				t.Errorf("%s has capabilities: %s", name, line)
			}
		}
		for _, path := range []string{u.Workspace + "/made", u.Root + "/home/" + id + "/agent/" + name + "/data/made"} {
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil || int(st.Uid) != u.UID || int(st.Gid) != u.UID {
				t.Errorf("%s: %v, of %d:%d", path, err, st.Uid, st.Gid)
			}
		}
		u.MustCtx("agent", "tsh", name, "--", "load", "fs.read")
		if _, err := os.Stat(u.Session(name, "default") + "/context/tsh.json"); err != nil {
			t.Error(err)
		}
		private(t, u.Root+"/home/"+id, u.UID)
		private(t, u.Layout.Socket(libctx.Agent(name)), u.UID)
	}
	private(t, root.Layout.Locks, 0)
	for _, dir := range []string{root.Root, root.Layout.Runtime} { // nothing that others could write
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			i, err := d.Info()
			if err == nil && i.Mode().Perm()&0o022 != 0 && i.Mode().Type() != fs.ModeSymlink {
				t.Errorf("%s has mode %v", path, i.Mode())
			}
			return nil
		})
	}

	// Each to his own; root to all.
	if r := b.Ctx("agent", "send", "alice", "say no"); r.Code != 13 {
		t.Errorf("bob to alice's agent: exit %d, %s", r.Code, r.Err)
	}
	if r := a.Ctx("agent", "history", "bob"); r.Code != 13 || r.Out != "" {
		t.Errorf("alice reads bob's: exit %d, %q, %s", r.Code, r.Out, r.Err)
	}
	if err := os.Chmod(root.Layout.Socket("alice"), 0o666); err != nil {
		t.Fatal(err)
	}
	if f, _ := dial(b, root.Layout.Socket("alice"), ""); len(f) != 1 || f[0].Str("code") != "EACCES" {
		t.Errorf("bob on alice's socket got %s", world.JSON(f))
	}
	if out := root.MustCtx("agent", "send", "--workspace", a.Workspace, "alice", "say root"); out != "root\n" {
		t.Errorf("root to alice's agent: %q", out)
	}
	private(t, root.Root+"/home/60001", alice) // also what came of root's message
	// A workspace of bob's is none for alice's agent.
	if f := root.Dial("alice").Ask(send("w", "w", b.Workspace, "say no"), "")[0]; f.Str("code") != "EACCES" {
		t.Errorf("a workspace of another user: %v", f)
	}
}

// private checks that everything below path belongs to uid and to nobody else.
func private(t *testing.T, path string, uid int) {
	t.Helper()
	n := 0
	filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return nil
		}
		n++
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Error(err)
		}
		mode := st.Mode & 0o777
		want := uint32(0o600)
		if d.IsDir() {
			want = 0o700
		}
		inSession := strings.Contains(path, "/session/") || d.IsDir() || d.Type() == fs.ModeSocket
		if int(st.Uid) != uid || int(st.Gid) != uid || inSession && mode != want {
			t.Errorf("%s: mode %o of %d:%d, want %o of %d", path, mode, st.Uid, st.Gid, want, uid)
		}
		return nil
	})
	if n == 0 {
		t.Errorf("%s is not there", path)
	}
}

// TestLoadedToolsOfALink: where a user put a link in the place of what a session
// keeps, root's daemon writes nothing behind it.
func TestLoadedToolsOfALink(t *testing.T) {
	root, a, _ := system(t)
	secret := filepath.Join(root.Dir, "secret")
	root.Mkdir(secret, 0o777)
	a.MustCtx("agent", "tsh", "alice", "--", "tools")
	context := a.Session("alice", "default") + "/context"
	if err := os.RemoveAll(context); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, context); err != nil {
		t.Fatal(err)
	}
	if r := a.Ctx("agent", "tsh", "alice", "--", "load", "fs.read"); r.Code == 0 {
		t.Errorf("loaded: %+v", r)
	}
	if entries, err := os.ReadDir(secret); err != nil || len(entries) > 0 {
		t.Errorf("behind the link: %v, %v", entries, err)
	}
	if r := a.Ctx("agent", "tsh", "alice", "--", "fs.read", "README.md"); r.Code != 0 {
		t.Errorf("a tool: %+v", r)
	}
}

// TestPlantedLinks: a user's links lead root nowhere.
func TestPlantedLinks(t *testing.T) {
	root, a, _ := system(t)
	a.MustCtx("agent", "send", "alice", "say hello")
	root.MustCtx("agent", "stop", "alice")
	victim := root.Dir + "/victim"
	root.Mkdir(victim, 0o700)
	for _, d := range []string{"/session", "/session/s", "/alice", "/alice/session", "/data"} {
		root.Mkdir(victim+d, 0o700)
	}
	names := []string{"messages.jsonl", "events.jsonl", "state", "latest.md", "list"}
	for _, f := range names {
		root.Write(victim+"/"+f, "root's\n")
		root.Write(victim+"/session/s/"+f, "root's\n")
	}
	look := func() (all []string) {
		filepath.WalkDir(victim, func(path string, d fs.DirEntry, err error) error {
			var st unix.Stat_t
			unix.Lstat(path, &st)
			text, _ := os.ReadFile(path)
			all = append(all, fmt.Sprint(path, st.Ino, st.Mode, st.Uid, st.Gid, st.Mtim, st.Size, string(text)))
			return nil
		})
		return all
	}
	before := look()
	home := root.Root + "/home/60001/agent"
	session := home + "/alice/session"
	for i, c := range []struct{ at, to string }{
		{home, victim}, {home + "/alice", victim}, {session, victim + "/session"}, {session + "/s", victim + "/session/s"},
		{session + "/s/messages.jsonl", victim + "/messages.jsonl"}, {session + "/s/events.jsonl", victim + "/events.jsonl"},
		{session + "/s/state", victim + "/state"}, {session + "/s/latest.md", victim + "/latest.md"}, {session + "/s/context", victim},
		{session + "/index", victim}, {home + "/alice/data", victim + "/data"}, {root.Root + "/home/60001", victim},
	} {
		root.MustCtx("agent", "send", "--session", "s", "--workspace", a.Workspace, "alice", "say before")
		root.MustCtx("agent", "stop", "alice")
		// Alice could do this herself.
		os.RemoveAll(root.Dir + "/aside")
		moved := os.Rename(c.at, root.Dir+"/aside")
		if err := os.Symlink(c.to, c.at); err != nil {
			t.Fatal(err)
		}
		os.Lchown(c.at, alice, alice)
		for _, line := range []string{
			send(fmt.Sprint("m", i), "s", a.Workspace, "say after"), send(fmt.Sprint("n", i), fmt.Sprint("new", i), a.Workspace, "say after"),
			world.JSON(map[string]any{"op": "send", "id": fmt.Sprint("o", i), "session": fmt.Sprint("private", i), "input": "say after"}),
			`{"op":"resume","session":"s"}`,
		} {
			con := root.Dial("alice")
			for f := con.Ask(line, "")[0]; f.Type() != "done" && f.Type() != "end" && f.Type() != "error"; f = con.Next() {
			}
		}
		root.Ctx("agent", "history", "--session", "s", "alice")
		root.MustCtx("agent", "stop", "alice")
		if now := look(); !slices.Equal(now, before) {
			t.Errorf("%s → %s: root was led there:\n%s\nbefore:\n%s", c.at, c.to, strings.Join(now, "\n"), strings.Join(before, "\n"))
			before = now
		}
		os.Remove(c.at)
		if moved == nil {
			os.RemoveAll(c.at)
			if err := os.Rename(root.Dir+"/aside", c.at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if out := a.MustCtx("agent", "send", "--session", "s", "alice", "say fine"); out != "fine\n" {
		t.Errorf("at the end: %q", out)
	}
}

// TestForeignControls: what a stranger could have written says nothing.
func TestForeignControls(t *testing.T) {
	root, a, _ := system(t)
	a.MustCtx("agent", "send", "alice", "say hello")
	control := root.Root + "/agent/alice.d"
	for path, file := range map[string]string{control: "alice.d", control + "/policy": "policy", control + "/owner": "owner"} {
		if err := os.Chown(path, bob, bob); err != nil {
			t.Fatal(err)
		}
		f := root.Dial("alice").Ask(send("m", "s", a.Workspace, "say no"), "")[0]
		if f.Str("code") != "EACCES" || !strings.Contains(f.Str("message"), file) {
			t.Errorf("%s of bob's: %v", path, f)
		}
		os.Chown(path, 0, 0)
	}
	// An agent that alice keeps herself may not name another user.
	if out, err := exec.Command("chown", "-R", "60001:60001", control).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	if out := a.MustCtx("agent", "send", "alice", "say mine"); out != "mine\n" {
		t.Errorf("controls of the owner's own: %q", out)
	}
	for name, text := range map[string]string{"owner": "0\n", "uid": "0\n", "gid": "0\n", "groups": "0\n"} {
		was := root.Read(control + "/" + name)
		a.Write(control+"/"+name, text)
		f := root.Dial("alice").Ask(send("m", "s", a.Workspace, "say no"), "")[0]
		if f.Type() != "error" || !strings.Contains(f.Str("message"), name) {
			t.Errorf("%s says %q: %v", name, text, f)
		}
		a.Write(control+"/"+name, was)
	}
}

// TestNoSpace: the file system of one user's sessions is full.
func TestNoSpace(t *testing.T) {
	root, a, b := system(t)
	home := root.Root + "/home/60001/agent"
	if err := unix.Mount("tmpfs", home, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=700,uid=60001,gid=60001"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(home, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{"/alice", "/alice/session", "/alice/data"} {
		a.Mkdir(home+d, 0o700)
	}
	a.MustCtx("agent", "send", "--session", "s", "alice", "say before")
	dir := home + "/alice/session"
	files := func() map[string]string {
		all := map[string]string{}
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				all[path] = root.Read(path)
			}
			return nil
		})
		return all
	}
	before := files()
	c := root.Dial("alice")
	fill := `call shell.exec {"cmd":"cat /dev/zero > /home/agent/data/fill; head -c 20000 /dev/zero | tr '\\0' x"}`
	f := c.Ask(send("m1", "s", a.Workspace, fill+"\n--\nsay after"), "done")
	if e := f[len(f)-2]; world.Last(f).Str("status") != "error" || e.Type() != "error" || e.Str("code") != "ENOSPC" || !strings.Contains(e.Str("message"), "no space left") {
		t.Errorf("the run that met the end of the space: %s", world.JSON(f[max(0, len(f)-2):]))
	}
	for path, text := range files() {
		was, ok := before[path]
		switch name := filepath.Base(path); {
		case !ok && strings.HasPrefix(name, "."):
			t.Errorf("%s is left", path)
		case !ok:
		case strings.HasSuffix(name, ".jsonl"):
			if !strings.HasPrefix(text, was) {
				t.Errorf("%s has lost what it held", path)
			}
		case text == "" || name == "latest.md" && text != was || name == "meta.json" && !json.Valid([]byte(text)):
			t.Errorf("%s was %q, now it is %q", path, was, text)
		}
	}
	if f := c.Ask(send("m2", "s", a.Workspace, "say "+strings.Repeat("no", 20000)), "")[0]; f.Type() != "error" || f.Str("code") != "ENOSPC" {
		t.Errorf("a message without space: %v", f)
	}
	if f := c.Ask(`{"op":"ping"}`, ""); f[0].Type() != "pong" {
		t.Errorf("ping without space: %v", f)
	}
	if out := b.MustCtx("agent", "send", "bob", "say elsewhere"); out != "elsewhere\n" {
		t.Errorf("another agent: %q", out)
	}
	if err := os.Remove(home + "/alice/data/fill"); err != nil {
		t.Fatal(err)
	}
	if f := c.Ask(send("m3", "s", a.Workspace, "say again"), "done"); world.Last(f).Str("status") != "ok" {
		t.Errorf("with space again: %s", world.JSON(f))
	}
	if ledger := root.Read(dir + "/s/messages.jsonl"); !strings.Contains(ledger, `"code":"ENOSPC"`) || strings.Contains(ledger, `"interrupted"`) {
		t.Errorf("the record gives another cause than the client was told:\n%.3000s", ledger)
	}
	seq, calls, results := 0, 0, 0
	for line := range strings.Lines(root.Read(dir + "/s/messages.jsonl")) {
		var r struct {
			Seq     int
			Content []struct{ Type string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %.200q", err, line)
		}
		if seq++; r.Seq != seq {
			t.Errorf("line %d has seq %d", seq, r.Seq)
		}
		for _, p := range r.Content {
			switch p.Type {
			case "tool_call":
				calls++
			case "tool_result":
				results++
			}
		}
	}
	if calls != 1 || results != 1 {
		t.Errorf("%d calls and %d results", calls, results)
	}
}
