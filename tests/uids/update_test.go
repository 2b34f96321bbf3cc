package uids

import (
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/tests/internal/world"
)

// TestAgentUpdateOfAUser: an agent of a user changes its own prompt through root's
// daemon, whoever owns its control directory, and the file is that owner's. Its
// capability socket is the user's, and hears neither root nor the user outside.
func TestAgentUpdateOfAUser(t *testing.T) {
	root, a, b := system(t)
	err := tree.NewAgent(root.Layout, tree.AgentSpec{
		Name: "coder", Owner: asuser.Identity{UID: alice, GID: alice}, Model: "debug/tools", Tools: []libctx.Tool{"agent.update"},
	})
	if err != nil {
		t.Fatal(err)
	}
	root.AwaitExists(root.Root + "/agent/coder.sock")
	dir := root.Root + "/agent/coder.d"
	for _, owner := range []int{0, alice} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(path, owner, -1)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("of-%d", owner)
		if out := a.MustCtx("agent", "send", "coder", "run: agent.update system.md "+text); !strings.Contains(out, "next run") {
			t.Errorf("%s", out)
		}
		st, err := os.Lstat(dir + "/system.md")
		if err != nil || st.Mode() != 0o644 || int(st.Sys().(*syscall.Stat_t).Uid) != owner || root.Read(dir+"/system.md") != text {
			t.Errorf("in a directory of uid %d: %v, %v, %q", owner, st, err, root.Read(dir+"/system.md"))
		}
	}

	sockets, err := filepath.Glob(root.Layout.Capabilities("coder") + "/*.sock")
	if err != nil || len(sockets) == 0 {
		t.Fatalf("%v, %v", sockets, err)
	}
	for _, path := range sockets {
		st, err := os.Lstat(path)
		if err != nil || st.Mode() != fs.ModeSocket|0o600 || st.Sys().(*syscall.Stat_t).Uid != alice {
			t.Errorf("%s: %v, %v", path, st, err)
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(world.Patience))
		if reply, err := io.ReadAll(conn); err != nil || !strings.Contains(string(reply), `"EACCES"`) {
			t.Errorf("root is answered %s, %v", reply, err)
		}
		conn.Close()
		if frames, _ := dial(a, path, "pong", `{"op":"ping"}`); len(frames) != 1 || frames[0].Str("code") != "EACCES" {
			t.Errorf("alice, outside: %s", world.JSON(frames))
		}
		if frames, _ := dial(b, path, "pong", `{"op":"ping"}`); len(frames) != 0 {
			t.Errorf("bob: %s", world.JSON(frames))
		}
	}
	for _, w := range []*world.World{a, b} {
		ls := w.Command("ctx", "--version")
		ls.Path, ls.Args = "/bin/ls", []string{"ls", root.Layout.Capabilities("coder")}
		if r := w.Run(ls); r.Code == 0 {
			t.Errorf("uid %d lists %s", w.UID, r.Out)
		}
	}
}
