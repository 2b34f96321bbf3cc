package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// aged makes sure that what is in a directory is older than what comes next. Times
// of files are between two ticks of the clock that runs are marked with.
func aged(t *testing.T, dir string) {
	t.Helper()
	var last int64
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		last = max(last, st.Ctim.Nano())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for now := (unix.Timespec{}); now.Nano() <= last; {
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			t.Fatal(err)
		}
	}
}

// change is one path of a changes frame, in short: "!" is listed, "*" executable.
func change(paths any) string {
	var words []string
	list, _ := paths.([]any)
	for _, p := range list {
		m := p.(map[string]any)
		word := m["path"].(string)
		if m["listed"] == true {
			word = "!" + word
		}
		if m["executable"] == true {
			word += "*"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// changed is the one changes frame of a run, which comes right before the end; nil
// if there is none.
func changed(t *testing.T, frames []world.Frame) world.Frame {
	t.Helper()
	var found world.Frame
	for i, f := range frames {
		if f.Type() != "changes" {
			continue
		}
		if rest := frames[i+1:]; found != nil || f.Str("id") == "" || rest[0].Type() != "done" && (rest[0].Type() != "error" || rest[1].Type() != "done") {
			t.Errorf("changes out of place: %s", world.JSON(frames))
		}
		found = f
	}
	return found
}

func changedIs(t *testing.T, frames []world.Frame, want string) world.Frame {
	t.Helper()
	f := changed(t, frames)
	got := ""
	if f != nil {
		got = change(f["paths"])
	}
	if got != want {
		t.Errorf("changed %q, want %q: %s", got, want, world.JSON(frames))
	}
	return f
}

// TestChanges: what a run changed is told at its end, of file tools exactly, of
// other programs by looking, and of what only reads not at all.
func TestChanges(t *testing.T) {
	w := modelled(t, "debug/tools", "fs.write", "fs.replace", "fs.read", "bash", "shell.exec")
	w.Mkdir(w.Workspace+"/sub", 0o755)
	w.Write(w.Workspace+"/sub/old", "old\n")
	aged(t, w.Workspace)
	c := w.Dial("m")
	n := 0
	run := func(lines ...string) []world.Frame {
		n++
		return c.Ask(send(fmt.Sprint("m", n), "s", w.Workspace, strings.Join(lines, "\n")), "done")
	}
	changedIs(t, run("hello"), "")
	changedIs(t, run("run: fs.read README.md", "run: bash -c 'ls; git log | head -1'", "run: shell.exec cat README.md"), "")
	f := changedIs(t, run(`run: fs.write new/file.txt hello`, `run: fs.write README.md again`, `run: fs.replace nothing x y`), "README.md new new/file.txt")
	if f["exact"] != true || f["beside"] != nil || f.Str("workspace") != w.Workspace {
		t.Errorf("%v", f)
	}
	aged(t, w.Workspace)
	f = changedIs(t, run("run: shell.exec mkdir -p sub/.git/hooks bin; echo x >sub/.git/config; echo x >.envrc; echo x >bin/run; chmod +x bin/run; rm sub/old; touch a\u200bb; echo x >made; rm made"),
		`!.envrc !sub/.git "a\u200bb" bin bin/run*`)
	if f["exact"] != nil || fmt.Sprint(f["listed"], f["executable"]) != "2 1" {
		t.Errorf("%v", f)
	}
	aged(t, w.Workspace)
	changedIs(t, run("run: shell.exec rm bin/run"), "bin")
	aged(t, w.Workspace)
	changedIs(t, c.Ask(tsh("t1", "s", w.Workspace, "shell.exec", "echo x >by-tsh; exit 3"), "done"), "by-tsh")
	changedIs(t, c.Ask(tsh("t2", "s", w.Workspace, "fs.read", "README.md"), "done"), "")

	// All of it, each path once, what is to be looked at first.
	r := w.Ctx("agent", "changes", "m", "--session", "s", "--json")
	if r.Code != 0 || r.Err != "" {
		t.Fatalf("%+v", r)
	}
	var paths []string
	for line := range strings.Lines(r.Out) {
		var p struct {
			Workspace, Path, What, Run, When string
			Listed, Executable               bool
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil || p.Workspace != w.Workspace || p.What == "" || p.Run == "" || p.When == "" {
			t.Errorf("%s: %v", line, err)
		}
		paths = append(paths, p.Path)
	}
	if got := strings.Join(paths[:3], " "); got != ".envrc sub/.git bin/run" && got != ".envrc bin/run sub/.git" {
		t.Errorf("first %q", got)
	}
	slices.Sort(paths)
	if got, want := strings.Join(paths, " "), `"a\u200bb" .envrc README.md bin bin/run by-tsh new new/file.txt sub/.git`; got != want {
		t.Errorf("all %s, want %s", got, want)
	}
	table := w.MustCtx("agent", "changes", "m", "--session", "s")
	if !strings.Contains(table, "other programs act on it") || !strings.Contains(table, "executable") || !strings.Contains(table, "sub/.git/\t") {
		t.Errorf("%s", table)
	}
	if out := w.MustCtx("agent", "history", "--session", "s", "m"); !strings.Contains(out, "created in the workspace: .envrc (other programs act on it)") &&
		!strings.Contains(out, "changed in the workspace: .envrc (other programs act on it)") {
		t.Errorf("%s", out)
	}

	// The person at the terminal is told, also who wants no notes.
	for _, args := range [][]string{{"agent", "send", "m"}, {"--quiet", "agent", "send", "m"}} {
		aged(t, w.Workspace)
		r = w.Ctx(append(args, "run: shell.exec touch go; chmod +x go; echo x >sub/.envrc")...)
		if r.Code != 0 || !strings.Contains(r.Err, "in the workspace: go (executable)") || !strings.Contains(r.Err, "in the workspace: sub/.envrc (other programs act on it)") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r = w.Ctx("agent", "changes", "m", "--session", "none"); r.Code != 1 {
		t.Errorf("%+v", r)
	}
}

// TestChangesOfAnExecutableAgent: the program is one that sees the workspace,
// whatever it calls; and a run that fails or is cancelled has changed what it did.
func TestChangesOfAnExecutableAgent(t *testing.T) {
	w := ready(t, "shell.exec", "fs.read")
	aged(t, w.Workspace)
	c := w.Dial("a")
	changedIs(t, c.Ask(send("m1", "s", w.Workspace, "say hi"), "done"), "")
	aged(t, w.Workspace)
	changedIs(t, c.Ask(send("m2", "s", w.Workspace, "call shell.exec {\"cmd\":\"echo x >written\"}\n--\nexit 3"), "done"), "written")
	aged(t, w.Workspace)
	c.Send(send("m3", "s", w.Workspace, `call shell.exec {"cmd":"echo x >.envrc; echo x >begun; exec sleep 1000"}`))
	w.AwaitExists(w.Workspace + "/begun")
	c2 := w.Dial("a")
	c2.Ask(`{"op":"cancel","id":"m3","session":"s"}`, "accepted")
	f := c.Until("done")
	changedIs(t, f, "!.envrc begun")
	if world.Last(f).Str("status") != "cancelled" {
		t.Errorf("%v", world.Last(f))
	}
}

// TestProtected: without the control a list of usual entries can not be changed,
// and file tools name the control; with it, what it says. What appears during a run
// is protected from the next call on.
func TestProtected(t *testing.T) {
	w := modelled(t, "debug/tools", "fs.write", "fs.replace", "shell.exec")
	for _, dir := range []string{".git", ".vscode", "conf"} {
		w.Mkdir(w.Workspace+"/"+dir, 0o755)
	}
	for path, text := range map[string]string{".git/config": "[core]\n", ".vscode/tasks.json": "{}\n", ".mcp.json": "{}\n", "conf/envrc": "x\n"} {
		w.Write(w.Workspace+"/"+path, text)
	}
	if err := os.Symlink("conf/envrc", w.Workspace+"/.envrc"); err != nil {
		t.Fatal(err)
	}
	c := w.Dial("m")
	n := 0
	run := func(line string) string {
		n++
		f := c.Ask(send(fmt.Sprint("m", n), "s", w.Workspace, "run: "+line), "done")
		return results(f)[0]
	}
	for line, top := range map[string]string{
		"fs.write .vscode/tasks.json evil": ".vscode", "fs.write .vscode/deep/new evil": ".vscode", "fs.write .mcp.json evil": ".mcp.json",
		"fs.replace .mcp.json {} evil": ".mcp.json", "fs.write /workspace/.git/hooks/pre-commit evil": ".git", "fs.write conf/envrc evil": "conf",
	} {
		if got := run(line); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, ": "+top+" is read-only") || !strings.Contains(got, "control protect") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for _, line := range []string{
		"echo evil >.vscode/tasks.json", "rm -r .vscode", "mv .vscode away", "echo evil >.mcp.json", "mv README.md .mcp.json", "ln .mcp.json second",
		"echo evil >.envrc", "mv conf away", "rm .git/config", "chmod 777 .git", "umount .git",
	} {
		if got := run("shell.exec " + line); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: %s", line, got)
		}
	}
	// A link can be exchanged; that is told.
	aged(t, w.Workspace)
	changedIs(t, c.Ask(send("link", "s", w.Workspace, "run: shell.exec rm .envrc; echo evil >.envrc"), "done"), "!.envrc")
	if got := run("fs.write .envrc more"); !strings.Contains(got, ".envrc is read-only") {
		t.Errorf("what appeared is not protected: %s", got)
	}
	w.MustCtx("agent", "set", "m", "protect", "README.md")
	if got := run("fs.write .vscode/tasks.json good"); !strings.HasPrefix(got, "ok: ") {
		t.Errorf("%s", got)
	}
	for _, line := range []string{"fs.write README.md evil", "fs.write .git/config evil"} {
		if got := run(line); !strings.Contains(got, "is read-only") {
			t.Errorf("%s: %s", line, got)
		}
	}
	for path, want := range map[string]string{".git/config": "[core]\n", ".mcp.json": "{}\n", "conf/envrc": "x\n", "README.md": "one\ntwo\nthree\n", ".vscode/tasks.json": "good"} {
		if got := w.Read(w.Workspace + "/" + path); got != want {
			t.Errorf("%s is %q", path, got)
		}
	}
}
