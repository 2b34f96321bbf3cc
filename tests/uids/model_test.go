package uids

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/tests/internal/world"
)

// TestModelAgentOfAUser: root's daemon drives a model agent as its owner: it
// reads no rules that the owner could not, what it writes is the owner's, and
// the models are nobody else's to ask.
func TestModelAgentOfAUser(t *testing.T) {
	root, a, b := system(t)
	err := tree.NewAgent(root.Layout, tree.AgentSpec{
		Name: "coder", Owner: asuser.Identity{UID: alice, GID: alice}, Model: "debug/tools", Tools: []libctx.Tool{"fs.read"},
	})
	if err != nil {
		t.Fatal(err)
	}
	root.AwaitExists(root.Root + "/agent/coder.sock")
	secret := root.Dir + "/secret"
	if err := os.WriteFile(secret, []byte("for root alone\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, a.Workspace+"/AGENTS.md"); err != nil {
		t.Fatal(err)
	}
	a.Mkdir(a.Workspace+"/sub", 0o700)
	a.Write(a.Workspace+"/sub/AGENTS.md", "Of the sub directory.\n")
	out := a.MustCtx("agent", "send", "--cwd", "/workspace/sub", "coder", "run: fs.read ../README.md")
	if !strings.Contains(out, "three") {
		t.Errorf("%s", out)
	}
	session := a.Session("coder", "default")
	if text := root.Read(session + "/AGENTS.md"); !strings.Contains(text, "Of the sub directory.") || strings.Contains(text, "for root alone") {
		t.Errorf("the rules are %q", text)
	}
	private(t, root.Root+"/home/60001", alice)

	// A link in the place of a snapshot is replaced, not followed.
	for _, file := range []string{"/AGENTS.md", "/SKILLS.md"} {
		if err := os.Remove(session + file); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(secret, session+file); err != nil {
			t.Fatal(err)
		}
	}
	a.MustCtx("agent", "send", "coder", "hello")
	if text := root.Read(secret); text != "for root alone\n" {
		t.Errorf("behind the link: %q", text)
	}

	// Whoever gets to the model socket is asked who he is.
	if r := b.Ctx("agent", "send", "coder", "hello"); r.Code != 13 {
		t.Errorf("bob to alice's agent: %+v", r)
	}
	socket := root.Layout.ModelSocket()
	request := `{"op":"generate","version":1,"model":"debug/echo","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
	if frames, _ := dial(b, socket, "done", request); len(frames) > 0 {
		t.Errorf("bob was let to %s", socket)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if frames, _ := dial(b, socket, "done", request); len(frames) != 2 || frames[0].Str("code") != "EACCES" {
		t.Errorf("bob on the model socket: %s", world.JSON(frames))
	}
}
