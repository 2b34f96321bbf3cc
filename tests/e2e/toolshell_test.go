package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// typed types one line into the agent's shell and returns the frames.
func typed(t *testing.T, w *world.World, id, session, line string) []world.Frame {
	t.Helper()
	return w.Dial("a").Ask(tsh(id, session, w.Workspace, strings.Fields(line)...), "done")
}

// TestBuiltins: every builtin through the socket is one call of tsh with one
// decision and one result, and no sandbox.
func TestBuiltins(t *testing.T) {
	w := ready(t, "fs.read", "fs.stat")
	uid := strconv.Itoa(w.UID)
	for i, c := range []struct {
		line string
		exit float64
		want string // the whole content, or, with … at its end, its beginning
	}{
		{"tools", 0, "fs.\ntsh\n"},
		{"tools fs", 0, "fs.read\nfs.stat\n"},
		{"tools -l fs.read", 0, ""},
		{"which fs.read", 0, "/ctx/tool/fs.read\n"},
		{"which fs.list", 13, "tsh: fs.list: not permitted\n"},
		{"which none", 1, "tsh: none: no such tool\nhint: tsh tools lists what there is\n"},
		{"type load fs.stat", 0, "load is a tsh builtin\nfs.stat is /ctx/tool/fs.stat\n"},
		{"command -v fs.stat loads", 0, "/ctx/tool/fs.stat\nloads\n"},
		{"help fs.stat", 0, "fs.stat\n/ctx/tool/fs.stat\n\n…"},
		{"help", 0, "tsh BUILTIN | tsh TOOL…"},
		{"help loading", 0, "load keeps…"},
		{"loads", 0, ""},
		{"load fs.list", 13, "tsh: fs.list: not permitted\n"},
		{"load fs.read", 0, "loaded fs.read\t/ctx/tool/fs.read\tmetadata\n"},
		{"loads", 0, "fs.read\t/ctx/tool/fs.read\tmetadata\t…"},
		{"pin fs.stat", 0, "pinned metadata fs.stat\t/ctx/tool/fs.stat\n"},
		{"pins", 0, "fs.stat\t/ctx/tool/fs.stat\tpinned\t…"},
		{"unload fs.stat", 69, "tsh: fs.stat is pinned\nhint: tsh unpin fs.stat\n"},
		{"unpin fs.stat", 0, "unpinned fs.stat\t/ctx/tool/fs.stat\n"},
		{"unload fs.stat", 0, "unloaded fs.stat\t/ctx/tool/fs.stat\n"},
		{"unload fs.stat", 1, "tsh: fs.stat is not loaded\n"},
		{"exit", 0, ""},
		{"exit 7", 7, ""},
		// Wrong usage.
		{"which", 2, "tsh: which: a name is missing\nhint: usage: which NAME…\n"},
		{"tools -x", 2, "tsh: tools: \"-x\" is none of its flags…"},
		{"load --all", 2, "tsh: load: …"},
		{"exit 256", 2, "tsh: exit: …"},
		{"command ls", 2, "tsh: command: …"},
		{"loads fs.read", 2, "tsh: loads: …"},
		{"which ../../etc/passwd", 2, "tsh: …"},
	} {
		f := typed(t, w, fmt.Sprint("b", i), "builtins", c.line)
		if got := world.Kinds(f); got != "start tool_call tool_policy tool_result done" || world.Last(f).Str("status") != "ok" {
			t.Fatalf("%s: %s", c.line, world.JSON(f))
		}
		call, policy, result := f[1], f[2], f[3]
		if call.Str("name") != "tsh" || policy["allowed"] != true || policy.Str("effect") != "pure" || policy["via"] != nil || result.Str("name") != "tsh" {
			t.Errorf("%s: %s", c.line, world.JSON(f))
		}
		want, prefix := strings.CutSuffix(c.want, "…")
		content, status := result.Str("content"), "ok"
		if c.exit != 0 {
			status = "error"
		}
		if result["exit_code"] != c.exit || result.Str("status") != status || content != want && (!prefix || !strings.HasPrefix(content, want)) {
			t.Errorf("%s: exit %v %s\n%s", c.line, result["exit_code"], result.Str("status"), content)
		}
	}
	long := typed(t, w, "long", "builtins", "tools -l")[3].Str("content")
	for _, want := range []string{"\nfs.list\t/ctx/tool/fs.list\t", "\tagent_policy\n", "\nfs.read\t/ctx/tool/fs.read\t"} {
		if !strings.Contains("\n"+long, want) {
			t.Errorf("no %q in %s", want, long)
		}
	}
	for line := range strings.Lines(long) {
		name, _, _ := strings.Cut(line, "\t")
		may := name == "fs.read" || name == "fs.stat" || name == "tsh"
		if refused := strings.Count(line, "\t") == 3; refused == may {
			t.Errorf("%q", line)
		}
	}
	// No sandbox was started for any of it, and the file is private.
	st, err := os.Stat(w.Session("a", "builtins") + "/context/tsh.json")
	if err != nil || st.Mode().Perm() != 0o600 || !strings.Contains(w.Read(w.Session("a", "builtins")+"/context/tsh.json"), `"name":"fs.read"`) {
		t.Errorf("%v %v", st, err)
	}
	if _, err := os.Stat(filepath.Join(w.Root, "home", uid, "agent", "a", "session", "other", "context")); err == nil {
		t.Error("a session that was never used has loaded tools")
	}
	// As a person types it.
	if r := w.Ctx("agent", "tsh", "--session", "builtins", "a", "--", "which", "none"); r.Code != 1 || !strings.HasPrefix(r.Out, "tsh: none: no such tool\n") {
		t.Errorf("%+v", r)
	}
	if r := w.Ctx("agent", "tsh", "--session", "builtins", "a", "--", "tools", "-x"); r.Code != 2 {
		t.Errorf("%+v", r)
	}
}

// TestBuiltinsStartNothing: where what sandboxes see can not be trusted no tool
// starts; builtins need no sandbox.
func TestBuiltinsStartNothing(t *testing.T) {
	w := ready(t, "fs.read")
	if err := os.Chmod(filepath.Join(w.Root, ".view"), 0o777); err != nil {
		t.Fatal(err)
	}
	w.MustCtx("agent", "set", "a", "perm", "rwx") // another view
	for i, line := range []string{"load fs.read", "tools", "which fs.read", "loads"} {
		if f := typed(t, w, fmt.Sprint(i), "s", line); f[3].Str("status") != "ok" {
			t.Errorf("%s: %s", line, world.JSON(f))
		}
	}
	if f := w.Dial("a").Ask(tsh("tool", "s", w.Workspace, "fs.read", "README.md"), "done"); world.Last(f).Str("status") == "ok" {
		t.Errorf("a tool started: %s", world.JSON(f))
	}
}

// TestLoadedToolsSurvive: what a session loaded is there after the agent's
// server was stopped or killed, a repeated id runs nothing again, sessions are
// apart, and a lost or damaged file costs the list only.
func TestLoadedToolsSurvive(t *testing.T) {
	w := ready(t, "fs.read", "fs.stat", "shell.exec")
	typed(t, w, "1", "s", "load fs.read")
	typed(t, w, "2", "s", "pin fs.stat")
	typed(t, w, "3", "s", "load shell.exec")
	loads := func(id, session string) string { return typed(t, w, id, session, "loads")[3].Str("content") }
	want := loads("4", "s")
	if strings.Count(want, "\n") != 3 {
		t.Fatalf("%q", want)
	}
	w.MustCtx("agent", "stop", "a")
	if got := loads("5", "s"); got != want {
		t.Errorf("after a stop %q", got)
	}
	for _, pid := range w.Processes() {
		if line := w.Read(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(line, "\x00agent\x00a\x00") {
			w.Kill(pid)
		}
	}
	if got := loads("6", "s"); got != want {
		t.Errorf("after a kill %q", got)
	}
	if got := loads("1", "other"); got != "" {
		t.Errorf("another session has %q", got)
	}
	// The same id again: the same frames, nothing executed.
	typed(t, w, "unload", "s", "unload shell.exec")
	file := w.Session("a", "s") + "/context/tsh.json"
	kept := w.Read(file)
	first, again := typed(t, w, "3", "s", "load shell.exec"), typed(t, w, "3", "s", "load shell.exec")
	if world.JSON(first) != world.JSON(again) || world.Kinds(first) != "start tool_call tool_policy tool_result done" || w.Read(file) != kept {
		t.Errorf("a repeated id: %s", world.JSON(again))
	}
	// A successful call through tsh, and a direct one, is a use; a failed one is not.
	if at, after := strings.Index(kept, `"fs.read"`), lastUsed(t, w, file, "fs.read"); at < 0 || after != 1 {
		t.Fatalf("%s", kept)
	}
	typed(t, w, "use-1", "s", "fs.read none")
	if n := lastUsed(t, w, file, "fs.read"); n != 1 {
		t.Errorf("a failed call: last used %d", n)
	}
	typed(t, w, "use-2", "s", "fs.read README.md")
	used := lastUsed(t, w, file, "fs.read")
	if used <= 1 {
		t.Errorf("a call through tsh: last used %d", used)
	}
	typed(t, w, "use-3", "s", "fs.read README.md")
	if n := lastUsed(t, w, file, "fs.read"); n != used {
		t.Errorf("the last one used is used again: %d", n)
	}
	w.Dial("a").Ask(send("direct", "s", w.Workspace, `call fs.stat {"path":"."}`+"\n--\nsay done"), "done")
	if n := lastUsed(t, w, file, "fs.stat"); n <= used {
		t.Errorf("a direct call: last used %d", n)
	}
	for _, text := range []string{"", "{", `{"version":9,"tools":[]}`, strings.Repeat("x", 100000)} {
		w.Write(file, text)
		if got := loads("damaged"+strconv.Itoa(len(text)), "s"); got != "" {
			t.Errorf("a damaged file says %q", got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if f := typed(t, w, "new", "s", "load fs.read"); f[3].Str("status") != "ok" || !strings.Contains(w.Read(file), "fs.read") {
		t.Errorf("%s", world.JSON(f))
	}
}

func lastUsed(t *testing.T, w *world.World, file, tool string) int {
	t.Helper()
	_, rest, ok := strings.Cut(w.Read(file), `"name":"`+tool+`"`)
	_, rest, _ = strings.Cut(rest, `"last_used":`)
	n, err := strconv.Atoi(rest[:max(strings.IndexAny(rest, ",}"), 0)])
	if !ok || err != nil {
		t.Fatalf("%s is not in %s", tool, w.Read(file))
	}
	return n
}

// TestEviction: the settings beside the tool tsh count from the next builtin on;
// wrong ones are told with their line and change nothing.
func TestEviction(t *testing.T) {
	w := ready(t, "fs.read", "fs.stat", "fs.list")
	config := filepath.Join(w.Root, "tool", "tsh.d", "config")
	w.Write(config, "# few\nmax_loaded_tools=2\n")
	if r := w.Ctx("file", "check", config); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	typed(t, w, "1", "s", "load fs.read fs.stat")
	f := typed(t, w, "2", "s", "load fs.list")
	if got := f[3].Str("content"); got != "loaded fs.list\t/ctx/tool/fs.list\tmetadata\nevicted fs.read\t/ctx/tool/fs.read\n" {
		t.Errorf("%q", got)
	}
	typed(t, w, "3", "s", "pin fs.stat")
	if got := typed(t, w, "4", "s", "load fs.read")[3].Str("content"); strings.Contains(got, "evicted") {
		t.Errorf("a pinned tool counted: %q", got)
	}
	for i, c := range []struct{ text, want string }{
		{"max_loaded_tools=0\n", "config: line 1"},
		{"\nspeed=1\n", "config: line 2"},
		{strings.Repeat("#", 70000) + "\n", "config"},
	} {
		w.Write(config, c.text)
		f := typed(t, w, fmt.Sprint("bad", i), "s", "load fs.list")
		if f[3].Str("status") != "error" || !strings.Contains(f[3].Str("content"), c.want) {
			t.Errorf("%.40q: %s", c.text, world.JSON(f[3]))
		}
		if f := typed(t, w, fmt.Sprint("fine", i), "s", "loads"); f[3].Str("status") != "ok" {
			t.Errorf("%s", world.JSON(f[3]))
		}
		if r := w.Ctx("file", "check", config); r.Code != 2 && r.Code != 1 {
			t.Errorf("check: %+v", r)
		}
	}
}

// TestSettings: an agent that may call tsh.config is shown the settings and can
// not change them; a person can, with the same tool, by the rights of the file.
func TestSettings(t *testing.T) {
	w := ready(t, "tsh.config")
	config := filepath.Join(w.Root, "tool", "tsh.d", "config")
	w.Write(config, "# mine\nmax_loaded_tools=5\n")
	r := typed(t, w, "1", "s", "tsh.config")[3]
	if r.Str("status") != "ok" || r.Str("content") != "max_loaded_tools=5\ncache_capacity=32\nwindow_percent=1\n[/ctx/tool/tsh.d/config]" {
		t.Errorf("%s", world.JSON(r))
	}
	r = typed(t, w, "2", "s", "tsh.config --max_loaded_tools 7")[3]
	if r.Str("status") != "error" || !strings.Contains(r.Str("content"), "inside an agent") {
		t.Errorf("%s", world.JSON(r))
	}
	r = w.Dial("a").Ask(send("3", "s", w.Workspace, `call tsh.config {"max_loaded_tools":7}`+"\n--\nobserve"), "done")[3]
	if r.Str("status") != "error" || w.Read(config) != "# mine\nmax_loaded_tools=5\n" {
		t.Errorf("%s", world.JSON(r))
	}
	if r := w.Run(w.Command("ctxtool", "tsh.config", "--max_loaded_tools", "7")); r.Code != 0 || w.Read(config) != "# mine\nmax_loaded_tools=7\n" {
		t.Errorf("%+v, %q", r, w.Read(config))
	}
	if r := w.Run(w.Command("ctxtool", "tsh.config", `{"max_loaded_tools":0}`)); r.Code != 2 {
		t.Errorf("%+v", r)
	}
}

// TestToolContext: executable agents are told about loaded tools in every step,
// by the session's own set; loading widens nothing.
func TestToolContext(t *testing.T) {
	w := ready(t, "fs.read")
	c := w.Dial("a")
	context := func(f []world.Frame) string {
		_, rest, _ := strings.Cut(world.JSON(f[len(f)-2]), `\"tool_context\":\"`)
		text, _, _ := strings.Cut(rest, `\",\"observation\"`)
		return text
	}
	if got := context(c.Ask(send("1", "s", w.Workspace, "envelope"), "done")); got != "" {
		t.Errorf("nothing is loaded: %q", got)
	}
	f := c.Ask(send("2", "s", w.Workspace, `call tsh {"args":["load","fs.read"]}`+"\n--\nenvelope"), "done")
	if got := context(f); !strings.HasPrefix(got, "fs.read") || !strings.Contains(got, "path (string, required)") {
		t.Errorf("%q in %s", got, world.JSON(f))
	}
	if got := world.Kinds(f); got != "start tool_call tool_policy tool_result message done" {
		t.Errorf("%s", got)
	}
	// A tool that is not declared can still not be called directly.
	w.MustCtx("agent", "set", "a", "tools", "")
	f = c.Ask(send("3", "s", w.Workspace, `call fs.read {"path":"README.md"}`+"\n--\nobserve"), "done")
	if f[2].Str("code") != "not_declared" {
		t.Errorf("%s", world.JSON(f))
	}
	// A session in memory has a set of its own, and leaves none.
	temp := `{"op":"send","id":"4","session":"s","scope":"temp","workspace":` + world.JSON(w.Workspace) + `,"input":` +
		world.JSON(`call tsh {"args":["unload","fs.read"]}`+"\n--\n"+`call tsh {"args":["pin","fs.read"]}`+"\n--\nenvelope") + `}`
	f = c.Ask(temp, "done")
	if got := context(f); f[3].Str("status") != "error" || !strings.HasPrefix(got, "fs.read (pinned)") {
		t.Errorf("%q in %s", got, world.JSON(f))
	}
	if got := w.Read(w.Session("a", "s") + "/context/tsh.json"); strings.Contains(got, `"pinned":true`) {
		t.Errorf("the session on disk: %s", got)
	}
}

// TestBuiltinsNeedTsh: without the rule for tsh there is no shell at all.
func TestBuiltinsNeedTsh(t *testing.T) {
	w := ready(t, "fs.read")
	w.MustCtx("agent", "set", "a", "policy", "allow a_t tool:fs.read execute\n")
	for i, line := range []string{"tools", "load fs.read", "exit", "which fs.read", "tools -x"} {
		f := typed(t, w, fmt.Sprint(i), "s", line)
		if f[2]["allowed"] != false || f[2].Str("code") != "agent_policy" || f[3].Str("status") != "error" || f[3].Str("content") != "not permitted" {
			t.Errorf("%s: %s", line, world.JSON(f))
		}
	}
	if _, err := os.Stat(w.Session("a", "s") + "/context/tsh.json"); err == nil {
		t.Error("a refused builtin left a file")
	}
}

// TestDecoys: names are looked up on CTX_PATH alone, whatever executables lie on
// PATH, in the workspace and in the agent's home.
func TestDecoys(t *testing.T) {
	w := ready(t, "fs.read", "fs.list", "fs.stat", "shell.exec")
	names := []string{"fs.read", "fs.list", "fs.stat", "shell.exec", "tsh", "tools", "which", "type", "command", "help", "load", "unload",
		"loads", "pin", "unpin", "pins", "exit", "quit", "decoy"}
	home := filepath.Dir(filepath.Dir(w.Session("a", "s")))
	for _, dir := range []string{w.Workspace, w.Home, home} {
		for _, name := range names {
			w.Write(dir+"/"+name, "#!/bin/sh\necho DECOY\n")
			if err := os.Chmod(dir+"/"+name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Env = append(w.Env, "PATH="+w.Home+":/usr/bin:/bin")
	w.MustCtx("agent", "stop", "a")
	for i, name := range names {
		line := name
		switch name {
		case "tsh":
			continue // refused as a request: the shell does not run itself
		case "fs.read", "fs.stat":
			line += " README.md"
		case "shell.exec":
			line += " pwd"
		case "which", "type", "load", "pin":
			line += " fs.read"
		case "command":
			line += " -v fs.read"
		}
		f := typed(t, w, fmt.Sprint("d", i), "s", line)
		content := f[3].Str("content")
		if strings.Contains(content, "DECOY") || name == "decoy" && content != "no such tool" {
			t.Errorf("%s: %q", line, content)
		}
	}
	if f := typed(t, w, "none", "s", "which decoy"); f[3]["exit_code"] != 1.0 {
		t.Errorf("%s", world.JSON(f))
	}
	// The program, by a person and in a sandbox.
	for _, name := range names {
		r := w.Run(w.Command("tsh", name))
		if strings.Contains(r.Out+r.Err, "DECOY") {
			t.Errorf("tsh %s: %+v", name, r)
		}
	}
	f := typed(t, w, "inside", "s", "shell.exec for p in /ctx/bin/tsh /ctx/tool/tsh; do $p tools; $p which decoy; $p fs.read README.md; echo $?; $p loads; $p load fs.read; echo $?; done")
	content := f[3].Str("content")
	if strings.Contains(content, "DECOY") || strings.Count(content, "fs.\nshell.\ntsh\n") != 2 || strings.Count(content, "69\n") != 4 {
		t.Errorf("%s", content)
	}
}
