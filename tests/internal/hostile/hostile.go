package hostile

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// Attack tries something and returns what of it succeeded, in words.
type Attack func(t *testing.T, w *world.World) (succeeded []string)

// Refused fails the test if any of an attack succeeds. Then it lets it happen
// again with each of these checks off, where it must succeed; "a+b" are checks of
// which each is enough to refuse it, "a,b" such of which not every kernel has
// each. Make makes the world.
func Refused(t *testing.T, make Maker, attack Attack, checks ...string) {
	t.Helper()
	try := func(name string, succeeds bool, off ...string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := attack(t, make(t, off...))
			if succeeds != (len(done) > 0) {
				t.Errorf("succeeded: %s", strings.Join(done, "; "))
			}
		})
	}
	try("refused", false)
	for _, c := range checks {
		if strings.Contains(c, ",") {
			try("without "+c, true, strings.Split(c, ",")...)
			continue
		}
		all := strings.Split(c, "+")
		try("without "+c, true, all...)
		for _, one := range all {
			if len(all) > 1 {
				try("without "+one, false, slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s != one })...)
			}
		}
	}
}

// Maker makes a world that is ready for an attack, with some checks off.
type Maker func(t testing.TB, off ...string) *world.World

// User is the world of an ordinary user, with two agents of theirs.
func User(t testing.TB, off ...string) *world.World {
	t.Helper()
	w := world.NewUser(t)
	Without(t, w, off...)
	arm(w)
	Serve(w)
	return w
}

// Narrow is User, served by programs that can open few files.
func Narrow(t testing.TB, off ...string) *world.World {
	t.Helper()
	w := world.NewUser(t)
	Without(t, w, off...)
	arm(w)
	Serve(w, "ulimit -n 80")
	return w
}

// Weak reports whether checks are off in a world.
func Weak(w *world.World) bool { return len(w.Env) > 0 }

// Without switches checks off in what is started from now on, by Serve too.
func Without(t testing.TB, w *world.World, checks ...string) {
	t.Helper()
	if len(checks) == 0 {
		return
	}
	w.Bin = Faulty(t)
	w.Env = append(w.Env, "CTX_FAULTS="+strings.Join(checks, "=off,")+"=off")
}

// Serve starts ctxd for all agents there are, with the world's environment and
// a umask of 0, in a shell that did what is before it, and returns when it listens. It ends with the test.
func Serve(w *world.World, before ...string) {
	w.T.Helper()
	log, err := os.Create(w.Dir + "/ctxd.log")
	if err != nil {
		w.T.Fatal(err)
	}
	defer log.Close()
	cmd := w.Command("ctxd")
	cmd.Args = []string{"sh", "-c", strings.Join(append(before, `umask 000; exec "$0" serve`), "; "), cmd.Path}
	cmd.Path = "/bin/sh"
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if w.T.Failed() {
			text, _ := os.ReadFile(log.Name())
			w.T.Logf("ctxd: %s", text)
		}
	})
	agents, err := filepath.Glob(w.Root + "/agent/*.d")
	if err != nil {
		w.T.Fatal(err)
	}
	for _, dir := range agents {
		w.AwaitExists(strings.TrimSuffix(dir, ".d") + ".sock")
	}
}

// arm makes the agents a, whose executable attacks, and b, which does not, and
// lets both use tools, among them one that attacks.
func arm(w *world.World) {
	w.T.Helper()
	Install(w, "intruder")
	for name, exec := range map[string]string{"a": "intruder", "b": "puppet"} {
		w.MustCtx("agent", "new", name, "--exec", filepath.Join(w.Bin, exec), "--tool", "shell.exec",
			"--tool", "fs.read", "--tool", "fs.write", "--tool", "agent.update", "--tool", "intruder")
	}
}

// Install makes a tool of one of the programs.
func Install(w *world.World, program string) {
	w.T.Helper()
	path := filepath.Join(w.Root, "tool", program)
	text, err := os.ReadFile(filepath.Join(w.Bin, program))
	if err != nil {
		w.T.Fatal(err)
	}
	w.Mkdir(path+".d", 0o755)
	w.Write(path+".d/effect", "host_process\n")
	Script(w, path, string(text))
}

// Script makes a program of a text.
func Script(w *world.World, path, text string) {
	w.T.Helper()
	w.Write(path, text)
	if err := os.Chmod(path, 0o755); err != nil {
		w.T.Fatal(err)
	}
}

// Intruder is the attacking program, where tools and the agent's own program find it.
const Intruder = "/ctx/tool/intruder"

var requests atomic.Int64

// ID is a client id that was not used before.
func ID() string { return "id-" + strconv.FormatInt(requests.Add(1), 10) }

// Send is a request for a run.
func Send(w *world.World, input string) string {
	return world.JSON(map[string]any{"op": "send", "id": ID(), "session": "s", "workspace": w.Workspace, "input": input})
}

// Tsh is a request for a call of a tool.
func Tsh(w *world.World, args ...string) string {
	return world.JSON(map[string]any{"op": "tsh", "id": ID(), "session": "s", "workspace": w.Workspace, "args": args})
}

// Result is the last result of a tool among the frames of a run, nil if there is
// none. What the run changed may come behind it.
func Result(frames []world.Frame) world.Frame {
	for _, f := range slices.Backward(frames) {
		if f.Type() == "tool_result" {
			return f
		}
	}
	return nil
}

// ByTool runs a command line in a sandbox of a tool of agent a and returns what
// it printed.
func ByTool(w *world.World, line string) string {
	w.T.Helper()
	return result(w, w.Dial("a").Ask(Tsh(w, "shell.exec", line), "done"), "tool_result")
}

// ByAgent does so in a sandbox of the agent's own program.
func ByAgent(w *world.World, line string) string {
	w.T.Helper()
	return result(w, w.Dial("a").Ask(Send(w, line), "done"), "message")
}

// Inside does so in both, one after the other.
func Inside(w *world.World, line string) string {
	w.T.Helper()
	return ByTool(w, line) + "\n" + ByAgent(w, line)
}

func result(w *world.World, frames []world.Frame, kind string) string {
	w.T.Helper()
	for _, f := range frames {
		switch {
		case f.Type() == kind && kind == "tool_result":
			return f.Str("content")
		case f.Type() == kind:
			part, _ := f["content"].([]any)[0].(map[string]any)
			text, _ := part["text"].(string)
			return text
		}
	}
	return "did break the run: " + world.JSON(frames[len(frames)-2])
}

// Did are the tries of the intruder that succeeded.
func Did(output string) (all []string) {
	for line := range strings.Lines(output) {
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "did "); ok {
			all = append(all, what)
		}
	}
	return all
}

// Tried fails the test unless the intruder tried at least so much, or succeeded.
func Tried(t *testing.T, output string, n int) string {
	t.Helper()
	if tries := strings.Count("\n"+output, "\nno ") + strings.Count("\n"+output, "\ndid "); tries < n && len(Did(output)) == 0 {
		t.Errorf("%d tries, not %d: %s", tries, n, output)
	}
	return output
}
