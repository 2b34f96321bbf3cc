package hook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/ctxd/internal/calls"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/ctxd/internal/toolrun"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"github.com/go-json-experiment/json/jsontext"
)

// entry is a ctxtool that can do the first step of a sandbox, where every user may
// run it.
var entry string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hook-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		entry = filepath.Join(dir, "ctxtool")
		build := exec.Command("go", "build", "-o", entry, "./internal/entry/testdata/ctxtool")
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

// world is a tree with the agent coder and the tool calc, a workspace, and what runs
// hooks there.
type world struct {
	testing.TB
	*Runner
	layout paths.Layout
	id     asuser.Identity // of the agent
	ws     string
}

// newWorld makes one of whoever runs the test; as root the agent is a user's that has
// no account, in a tree of root's.
func newWorld(t testing.TB) *world {
	t.Helper()
	top, err := os.MkdirTemp("", "hook-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	w := &world{TB: t, id: asuser.Self(), ws: filepath.Join(top, "ws")}
	w.ok(os.Chmod(top, 0o755))
	root := filepath.Join(top, "tree")
	w.layout = paths.New(paths.Env{RuntimeDir: filepath.Join(top, "run"), Home: filepath.Join(top, "home"), UID: 60001}, root)
	if w.id.UID == 0 {
		w.layout.System = true
		w.id = asuser.Identity{UID: 60001, GID: 60001}
	}
	uid := strconv.Itoa(int(w.id.UID))
	w.write("status", "ready\n", 0o644)
	w.write("agent/coder", "#!/bin/sh\n", 0o755)
	for file, text := range map[string]string{
		"owner": uid + "\n", "gid": strconv.Itoa(int(w.id.GID)) + "\n", "abi": libctx.ABI + "\n", "perm": "rwx\n",
		"policy": "allow coder_t tool:tsh execute\nallow coder_t tool:calc execute\n",
		"env":    "SECRET=of-the-tools\nBASH_ENV=/workspace/evil\n",
	} {
		w.write("agent/coder.d/"+file, text, 0o644)
	}
	w.write("tool/calc", "#!/bin/sh\n", 0o755)
	w.write("tool/calc.d/effect", "pure\n", 0o644)
	w.dir(w.layout.Home(w.id.UID))
	w.dir(w.ws)
	for _, dir := range []string{w.ws, w.layout.Home(w.id.UID)} {
		w.ok(os.Chown(dir, int(w.id.UID), int(w.id.GID)))
	}
	launcher, err := sandboxrun.New(sandboxrun.Config{Entry: entry})
	w.ok(err)
	t.Cleanup(func() { launcher.Close() })
	w.Runner = New(&toolrun.Runner{Layout: w.layout, Agent: "coder", Launcher: launcher, Ctxtool: entry})
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// dir makes a directory and those above it, readable whatever the umask.
func (w *world) dir(path string) {
	w.Helper()
	if _, err := os.Stat(path); err == nil {
		return
	}
	w.dir(filepath.Dir(path))
	w.ok(os.Mkdir(path, 0o700))
	w.ok(os.Chmod(path, 0o755))
}

// write makes a file of the tree, and the directories above it.
func (w *world) write(rel, text string, perm os.FileMode) string {
	w.Helper()
	path := filepath.Join(w.layout.Root, rel)
	w.dir(filepath.Dir(path))
	w.ok(os.WriteFile(path, []byte(text), 0o600))
	w.ok(os.Chmod(path, perm))
	return path
}

// The hooks of the agent.
const (
	pre  = "agent/coder.d/hooks/pre.d/"
	post = "agent/coder.d/hooks/post.d/"
)

// script makes a hook of the agent that is a shell script.
func (w *world) script(dir, name, text string) string {
	w.Helper()
	return w.write(dir+name, "#!/bin/sh\n"+text+"\n", 0o755)
}

// call is a call of calc with these arguments, as hooks get it.
func (w *world) call(args string) calls.HookCall {
	w.Helper()
	agent, err := view.Load(w.layout, "coder")
	w.ok(err)
	i := effect.Intent{
		Principal: agent.Subject, UID: w.id.UID, Session: "default", Run: "01KB9QZ3M8T5V2N7X4C6D1E0FG", Call: "call-1", Via: "tsh",
		Tool: "calc", Path: "/ctx/tool/calc", Effect: "pure", Policy: agent.Effects, Workspace: w.ws, Cwd: "/workspace",
		Arguments: jsontext.Value(args),
	}
	return calls.HookCall{
		Agent: agent, Intent: i, Digest: i.Digest(),
		Call: toolrun.Call{ID: i.Call, Name: "tsh", Session: i.Session, Run: i.Run, Workspace: w.ws, Cwd: i.Cwd},
	}
}

// allows fails the test unless the hooks looked and none was against the call.
func (w *world) allows() {
	w.Helper()
	if looked, err := w.Pre(w.Context(), w.call("{}")); !looked || err != nil {
		w.Errorf("looked is %t: %v", looked, err)
	}
}

// refuses fails the test unless the hooks refuse, for a reason of these words on one
// line.
func (w *world) refuses(words ...string) {
	w.Helper()
	looked, err := w.Pre(w.Context(), w.call("{}"))
	if !looked || err == nil {
		w.Fatalf("looked is %t: %v", looked, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) || strings.ContainsAny(err.Error(), "\n\x1b") {
			w.Errorf("%q does not say %q", err, word)
		}
	}
}

// made reads a file that a hook made in the workspace; "" if it made none.
func (w *world) made(name string) string {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.ws, name))
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	return string(b)
}
