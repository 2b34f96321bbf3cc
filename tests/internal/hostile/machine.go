package hostile

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/tests/internal/world"
)

// Users of a machine, without accounts and without homes.
const (
	Alice = 60001 // whose agent a is
	Bob   = 60002 // whose agent b is, and who attacks
)

// Machine is the world of root, who serves agents of two users. Their directories can be reached by everybody, as far as their own modes let
// them.
func Machine(t testing.TB, off ...string) *world.World {
	t.Helper()
	w := world.New(t)
	Without(t, w, off...)
	if err := os.Chmod(w.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	Install(w, "intruder")
	for name, uid := range map[libctx.Agent]uint32{"a": Alice, "b": Bob} {
		err := tree.NewAgent(w.Layout, tree.AgentSpec{
			Name: name, Owner: asuser.Identity{UID: uid, GID: uid}, Exec: filepath.Join(w.Bin, "intruder"),
			Tools: []libctx.Tool{"shell.exec", "fs.read", "intruder", "agent.update"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	Serve(w)
	return w
}

// As is the same world for one of its users, with a workspace of their own.
func As(w *world.World, uid int) *world.World {
	w.T.Helper()
	u := *w
	u.UID = uid
	u.Home = w.Dir + "/home-" + strconv.Itoa(uid)
	u.Workspace = w.Dir + "/work-" + strconv.Itoa(uid)
	for _, dir := range []string{u.Home, u.Workspace} {
		if _, err := os.Stat(dir); err != nil {
			u.Mkdir(dir, 0o700)
		}
	}
	return &u
}
