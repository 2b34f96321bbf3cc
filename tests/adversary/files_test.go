package adversary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// changed are the files below a directory whose content or mode is not what it
// was, and those that came or went. What the runtime writes itself is left out.
func changed(w *world.World, dir string) (look func() []string) {
	all := func() map[string]string {
		found := map[string]string{}
		filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			switch filepath.Base(path) {
			case "log", "meta.json", "pid", "status":
				return nil
			}
			st, text := unix.Stat_t{}, []byte(nil)
			if err == nil {
				err = unix.Lstat(path, &st)
			}
			if err == nil && d.Type().IsRegular() {
				text, err = os.ReadFile(path)
			}
			found[path] = fmt.Sprintf("%o %s %v", st.Mode, text, err) // what has become unreadable has changed
			return nil
		})
		return found
	}
	before := all()
	if len(before) < 2 {
		w.T.Fatalf("%s: there is nothing", dir)
	}
	return func() (names []string) {
		after := all()
		for path, was := range before {
			if now, ok := after[path]; !ok || now != was {
				names = append(names, "change "+path)
			}
		}
		for path := range after {
			if _, ok := before[path]; !ok {
				names = append(names, "make "+path)
			}
		}
		slices.Sort(names)
		return names
	}
}

// TestOwnControls: an agent writes its own policy, perm, approval and effects.
func TestOwnControls(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		look := changed(w, w.Root+"/agent")
		var at []string
		for _, name := range []string{"policy", "perm", "approval", "effects", "tools", "mount", "protect", "owner", "system.md"} {
			at = append(at, "/ctx/agent/a.d/"+name, w.Root+"/agent/a.d/"+name)
		}
		out := hostile.Inside(w, hostile.Intruder+" write "+strings.Join(append(at, "/ctx/agent/a.d", "/ctx/agent/a", "/ctx/agent"), " "))
		done := hostile.Did(hostile.Tried(t, out, 400))
		// By the tools that write, and by way of a link in the workspace.
		if err := os.Symlink("/ctx/agent/a.d", w.Workspace+"/link"); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"link/policy", "link/perm", "../ctx/agent/a.d/effects", w.Root + "/agent/a.d/policy"} {
			f := w.Dial("a").Ask(hostile.Tsh(w, "fs.write", path, "allow a_t tool:* execute\n"), "done")
			if r := hostile.Result(f); r.Str("status") == "ok" && path[0] != '/' { // the sandbox has a /tmp of its own
				done = append(done, "fs.write "+path)
			}
		}
		return append(done, look()...)
	}, "sandbox:tree")
}

// TestAnotherAgent: an agent reads and writes what belongs to another one of its
// user.
func TestAnotherAgent(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		w.MustCtx("agent", "send", "--session", "s", "b", "say the secret of b")
		look := changed(w, w.Root+"/agent/b.d")
		home := w.Session("b", "s")
		places := []string{
			"/ctx/agent/b.d/policy", "/ctx/agent/b.d", "/ctx/agent/b", w.Root + "/agent/b.d/policy", home + "/messages.jsonl", home,
			"/ctx/home", w.Root, w.Home, w.Layout.Runtime, w.Layout.Socket("b"), "/home/agent/../b", "/home/agent/session/../../b/session/s",
		}
		out := hostile.Inside(w, hostile.Intruder+" open "+strings.Join(places, " ")+"; "+hostile.Intruder+" write "+strings.Join(places[:6], " "))
		done := slices.DeleteFunc(hostile.Did(hostile.Tried(t, out, 100)), func(s string) bool { return s == "open /ctx/home" }) // empty
		out = hostile.Inside(w, "grep -rsl 'the secret of [b]' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; ls -A /ctx/home/*/agent")
		if out := strings.TrimSpace(out); strings.Contains(out, "jsonl") || strings.Contains(out, "agent/") {
			done = append(done, "find "+out)
		}
		return append(done, look()...)
	})
}

// TestOwnLedger: an agent changes what is recorded of it.
func TestOwnLedger(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		hostile.ByTool(w, "true")
		ledger := w.Session("a", "s") + "/messages.jsonl"
		before := w.Read(ledger)
		at := "/home/agent/session/s/"
		out := hostile.Inside(w, hostile.Intruder+" write "+at+"messages.jsonl "+at+"events.jsonl "+at+"state "+at+"context "+at+"new")
		done := hostile.Did(hostile.Tried(t, out, 100))
		out = hostile.Inside(w, hostile.Intruder+" write /home/agent/session/s /home/agent/session/other")
		done = append(done, hostile.Did(hostile.Tried(t, out, 40))...)
		if now, err := os.ReadFile(ledger); err != nil || !strings.HasPrefix(string(now), before) {
			done = append(done, "change the ledger")
		}
		return done
	}, "sandbox:session")
}

// TestProtectedWorkspace: an agent changes what the person's own tools execute
// later.
func TestProtectedWorkspace(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		repository(t, w, w.Workspace)
		w.Mkdir(w.Workspace+"/.vscode", 0o755)
		w.Write(w.Workspace+"/.vscode/tasks.json", "{}\n")
		w.Mkdir(w.Workspace+"/mine", 0o755)
		w.Write(w.Workspace+"/mine/hook", "true\n")
		w.Write(w.Root+"/agent/a.d/protect", ".vscode/tasks.json\nmine/hook\n")
		look := func() (all []string) {
			for _, dir := range []string{".git", ".vscode", "mine"} {
				all = append(all, w.Workspace+"/"+dir)
			}
			return all
		}
		var watched []func() []string
		for _, dir := range look() {
			watched = append(watched, changed(w, dir))
		}
		out := hostile.Inside(w, "cd /workspace; "+hostile.Intruder+" write .git/config .git/hooks/pre-commit .git .git/hooks .vscode/tasks.json .vscode mine/hook mine"+
			"; mv .git away && cp -r away .git && echo did move; rm -rf .git; git config core.fsmonitor /bin/true && echo did configure; true")
		done := slices.DeleteFunc(hostile.Did(hostile.Tried(t, out, 150)), func(s string) bool {
			return s == "create .git" || s == "create .vscode" || s == "create mine" // beside them
		})
		for _, look := range watched {
			done = append(done, look()...)
		}
		return done
	}, "sandbox:protect")
}

// repository makes one, as the world's user.
func repository(t *testing.T, w *world.World, dir string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.Command("ctx")
	cmd.Path, cmd.Dir, cmd.Args = git, dir, []string{"git", "init", "-q"}
	if r := w.Run(cmd); r.Code != 0 {
		t.Fatalf("%+v", r)
	}
}

// TestWorkspaceInTree: a project that leads into the tree, and is opened as a
// workspace.
func TestWorkspaceInTree(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		look := changed(w, w.Root+"/agent/b.d")
		for _, to := range []string{w.Root + "/agent/b.d", w.Root + "/agent", w.Dir} {
			link := w.Workspace + "/project"
			os.Remove(link)
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
			led := *w
			led.Workspace = link
			line := `for f in policy b.d/policy tree/agent/b.d/policy; do [ -e $f ] && echo "allow b_t tool:* execute" >> $f; done`
			for _, request := range []string{hostile.Tsh(&led, "shell.exec", line), hostile.Send(&led, line)} {
				f := w.Dial("a").Ask(request, "")
				if f[0].Type() != "error" {
					done = append(done, "work in "+to)
				}
			}
		}
		return append(done, look()...)
	}, "guard:workspace")
}
