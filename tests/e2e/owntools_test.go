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

// userTools is the directory of the user's own tools.
func userTools(w *world.World) string {
	return filepath.Join(w.Root, "home", strconv.Itoa(w.UID), "tool")
}

// install writes a tool with its control files into a directory.
func install(t *testing.T, w *world.World, dir, name, text string, controls map[string]string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(file+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	w.Write(file, text)
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	for control, value := range controls {
		w.Write(filepath.Join(file+".d", control), value)
	}
}

// examples installs the tools that the guide has people copy.
func examples(t *testing.T, w *world.World) {
	t.Helper()
	from := "../../libctx/sdk/example/tool"
	for _, name := range []string{"todo", "wordcount"} {
		controls := map[string]string{}
		entries, err := os.ReadDir(from + "/" + name + ".d")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			controls[e.Name()] = w.Read(from + "/" + name + ".d/" + e.Name())
		}
		install(t, w, userTools(w), name, w.Read(from+"/"+name), controls)
	}
}

// result is the tool_result among frames.
func result(f []world.Frame) world.Frame {
	for _, x := range f {
		if x.Type() == "tool_result" {
			return x
		}
	}
	return world.Frame{}
}

// TestOwnTools: a tool of the user's own tier, in shell and in Python, is called
// directly and through tsh like a built-in one, and refused like one.
func TestOwnTools(t *testing.T) {
	w := world.New(t)
	examples(t, w)
	w.Puppet("a", "todo", "wordcount")
	if got := w.MustCtx("agent", "get", "a", "perm"); got != "rw-\n" {
		t.Errorf("perm %q", got)
	}
	w.MustCtx("agent", "send", "--session", "warmup", "a", "say hello")
	c := w.Dial("a")
	call := func(id, tool, args string) world.Frame {
		f := c.Ask(send(id, "s", w.Workspace, "call "+tool+" "+args+"\n--\nobserve"), "done")
		if world.Last(f).Str("status") != "ok" {
			t.Fatalf("%s", world.JSON(f))
		}
		return result(f)
	}
	for i, x := range []struct{ tool, args, status, content string }{
		{"todo", `{"action":"add","text":"buy  milk"}`, "ok", "1. [ ] buy milk\n"},
		{"todo", `{"args":["add","write","a","letter"]}`, "ok", "1. [ ] buy milk\n2. [ ] write a letter\n"},
		{"todo", `{"action":"done","number":1}`, "ok", "1. [x] buy milk\n2. [ ] write a letter\n"},
		{"todo", `{"action":"done","number":9}`, "error", "done: there is no number 9"},
		{"todo", `{"action":"burn"}`, "error", "the arguments do not fit the tool's schema"},
		{"todo", `{"args":["burn"]}`, "error", "usage: todo"},
		{"wordcount", `{"args":["README.md"]}`, "ok", "3\tREADME.md\n"},
		{"wordcount", `{"args":["README.md","none"]}`, "error", "3\tREADME.md\nwordcount: none: no file that can be read\nexit code 1"},
		{"wordcount", `{"args":[]}`, "error", "usage: wordcount FILE…\nexit code 2"},
		{"wordcount", `{"path":"README.md"}`, "error", "the arguments do not fit the tool's schema"},
	} {
		r := call(fmt.Sprint("d", i), x.tool, x.args)
		if r.Str("status") != x.status || !strings.HasPrefix(r.Str("content"), x.content) {
			t.Errorf("%s %s: %s", x.tool, x.args, world.JSON(r))
		}
	}
	for i, x := range []struct{ line, content string }{
		{"todo", "1. [x] buy milk\n2. [ ] write a letter\n"},
		{"todo done 2", "1. [x] buy milk\n2. [x] write a letter\n"},
		{"wordcount README.md TODO.md", "3\tREADME.md\n9\tTODO.md\n"},
		{"which todo", "/ctx/home/" + strconv.Itoa(w.UID) + "/tool/todo\n"},
		{"tools", "todo\ntsh\nwordcount\n"},
		{"load todo wordcount", ""},
	} {
		r := result(typed(t, w, fmt.Sprint("t", i), "s", x.line))
		if r.Str("status") != "ok" || x.content != "" && r.Str("content") != x.content {
			t.Errorf("%s: %s", x.line, world.JSON(r))
		}
	}
	// Refused by the agent's policy, then by the tool's own.
	w.Puppet("b", "wordcount")
	f := w.Dial("b").Ask(tsh("1", "s", w.Workspace, "todo", "list"), "done")
	if f[2].Str("code") != "perm" {
		t.Errorf("%s", world.JSON(f))
	}
	w.MustCtx("agent", "set", "b", "perm", "rwx")
	f = w.Dial("b").Ask(tsh("2", "s", w.Workspace, "todo", "list"), "done")
	if f[2].Str("code") != "agent_policy" || result(f).Str("content") != "not permitted" {
		t.Errorf("%s", world.JSON(f))
	}
	w.Write(filepath.Join(userTools(w), "todo.d", "policy"), "allow other_t tool:todo execute\n")
	if f := typed(t, w, "policy", "s", "todo"); f[2].Str("code") != "tool_policy" {
		t.Errorf("%s", world.JSON(f))
	}
	if got := result(typed(t, w, "listing", "s", "tools -l todo")).Str("content"); got != "" {
		t.Errorf("%q", got) // todo is a tool, no group
	}
	if got := result(typed(t, w, "listing-2", "s", "tools -l")).Str("content"); !strings.Contains(got, ".\ttool_policy\n") {
		t.Errorf("%q", got)
	}
}

// TestTiers: the first hit on the agent's path is the tool, whichever tier holds
// it; what others can write is passed to nobody.
func TestTiers(t *testing.T) {
	w := ready(t, "fs.read")
	tiers := map[string]string{
		"tree": filepath.Join(w.Root, "tool"), "own": userTools(w), "shared": filepath.Join(w.Root, "shared", "team", "tool"),
	}
	allow := w.MustCtx("agent", "get", "a", "policy")
	for _, tool := range []string{"where", "tree.only", "own.only", "shared.only"} {
		allow += "allow a_t tool:" + tool + " execute\n"
	}
	w.MustCtx("agent", "set", "a", "policy", allow)
	for name, dir := range tiers {
		for _, tool := range []string{"where", name + ".only"} {
			install(t, w, dir, tool, "#!/bin/sh\necho "+name+"\n", map[string]string{"effect": "pure\n"})
		}
	}
	uid := strconv.Itoa(w.UID)
	own, shared := "/ctx/home/"+uid+"/tool", "/ctx/shared/team/tool"
	for i, c := range []struct{ path, where, only string }{
		{"", "tree", "tree own"},
		{"/ctx/tool\n" + own + "\n" + shared + "\n", "tree", "tree own shared"},
		{own + "\n/ctx/tool\n", "own", "tree own"},
		{shared + "\n" + own + "\n/ctx/tool\n", "shared", "tree own shared"},
	} {
		if c.path != "" {
			w.MustCtx("agent", "set", "a", "path", c.path)
		}
		if r := result(typed(t, w, fmt.Sprint("w", i), "s", "where")); r.Str("content") != c.where+"\n" {
			t.Errorf("%q: %s", c.path, world.JSON(r))
		}
		for name := range tiers {
			r := result(typed(t, w, fmt.Sprint("o", i, name), "s", name+".only"))
			if found := r.Str("status") == "ok"; found != strings.Contains(c.only, name) {
				t.Errorf("%q %s: %s", c.path, name, world.JSON(r))
			}
		}
		list := w.MustCtx("tool", "ls", "a")
		if strings.Contains(list, "shared.only\t") != strings.Contains(c.only, "shared") {
			t.Errorf("%q: ctx tool ls a: %s", c.path, list)
		}
	}
	// A person's own commands look where CTX_PATH says.
	w.Env = append(w.Env, "CTX_PATH="+shared+":"+own+":/ctx/tool")
	for _, args := range [][]string{{"tool", "which", "where"}, {"tool", "help", "where"}, {"tool", "ls"}} {
		if out := w.MustCtx(args...); !strings.Contains(out, "shared") {
			t.Errorf("%q: %s", args, out)
		}
	}
	if r := w.Run(w.Command("tsh", "which", "shared.only", "own.only")); r.Code != 0 {
		t.Errorf("%+v", r)
	}
	// Writable by others: the tool is there and is not run.
	if err := os.Chmod(filepath.Join(tiers["shared"], "where"), 0o777); err != nil {
		t.Fatal(err)
	}
	if f := typed(t, w, "loose", "s", "where"); f[2].Str("code") != "not_regular" || result(f).Str("content") != "the tool can not be run" {
		t.Errorf("%s", world.JSON(f))
	}
}

// TestModeFiles: a mode that says nothing refuses the tool; the wrong one of the
// two makes calls fail in their own words, and no run.
func TestModeFiles(t *testing.T) {
	w := ready(t, "fs.read")
	w.MustCtx("agent", "set", "a", "policy", w.MustCtx("agent", "get", "a", "policy")+"allow a_t tool:m execute\n")
	plain := "#!/bin/sh\necho plain \"$@\"\n"
	frames := "#!/bin/sh\nr=$CTX_RUN_ID\necho '{\"type\":\"start\",\"run\":\"'$r'\",\"tool\":\"m\"}'\necho '{\"type\":\"done\",\"run\":\"'$r'\",\"status\":\"ok\"}'\n"
	for i, c := range []struct{ text, mode, code, status, content string }{
		{plain, "-", "", "ok", "plain x\n"},
		{plain, "cli\n", "", "ok", "plain x\n"},
		{plain, "json\n", "", "error", "tool output: "},
		{frames, "json\n", "", "ok", ""},
		{frames, "cli\n", "", "ok", `{"type":"start"`},
		{plain, "xml\n", "not_regular", "error", "the tool can not be run"},
		{plain, "", "not_regular", "error", "the tool can not be run"},
		{plain, "cli", "not_regular", "error", "the tool can not be run"},
		{plain, "cli\njson\n", "not_regular", "error", "the tool can not be run"},
		{plain, "json \n", "not_regular", "error", "the tool can not be run"},
		{plain, strings.Repeat("x", 70000), "not_regular", "error", "the tool can not be run"},
	} {
		controls := map[string]string{"effect": "pure\n", "mode": c.mode}
		file := filepath.Join(userTools(w), "m.d", "mode")
		os.Remove(file)
		if c.mode == "-" {
			delete(controls, "mode")
		}
		install(t, w, userTools(w), "m", c.text, controls)
		f := typed(t, w, fmt.Sprint("m", i), "s", "m x")
		r := result(f)
		if world.Last(f).Str("status") != "ok" || f[2].Str("code") != c.code || r.Str("status") != c.status || !strings.HasPrefix(r.Str("content"), c.content) {
			t.Errorf("mode %.20q: %s", c.mode, world.JSON(f))
		}
		if check := w.Ctx("file", "check", file); c.mode != "-" && (check.Code == 0) != (c.code == "") {
			t.Errorf("mode %.20q: check says %+v", c.mode, check)
		}
	}
}

// TestFrameRules: a tool of mode json that breaks any rule of its frames fails
// that call with the reason; the run, and the next call, go on.
func TestFrameRules(t *testing.T) {
	w := world.New(t)
	install(t, w, userTools(w), "raw", `#!/usr/bin/env python3
import json, os, sys
a = json.load(sys.stdin)
sys.stderr.write("noise on stderr\n")
out = a["out"].replace("RUN", os.environ["CTX_RUN_ID"]) * a.get("times", 1)
sys.stdout.buffer.write(out.encode().replace(b"<byte>", b"\xff"))
sys.stdout.flush()
os._exit(a.get("exit", 0))
`, map[string]string{"effect": "pure\n", "mode": "json\n", "schema": `{"type":"object"}` + "\n"})
	w.Puppet("a", "raw")
	w.MustCtx("agent", "send", "--session", "warmup", "a", "say hello")
	const (
		start   = `{"type":"start","run":"RUN","tool":"raw"}` + "\n"
		message = `{"type":"message","run":"RUN","role":"tool","content":[{"type":"text","text":"hi"}]}` + "\n"
		failed  = `{"type":"error","run":"RUN","code":"EIO","message":"bad luck"}` + "\n"
		ok      = `{"type":"done","run":"RUN","status":"ok"}` + "\n"
		notOK   = `{"type":"done","run":"RUN","status":"error"}` + "\n"
	)
	c := w.Dial("a")
	n := 0
	call := func(args map[string]any) world.Frame {
		n++
		f := c.Ask(send(fmt.Sprint("r", n), "s", w.Workspace, "call raw "+world.JSON(args)+"\n--\nobserve"), "done")
		if world.Last(f).Str("status") != "ok" || world.Kinds(f) != "start tool_call tool_policy tool_result message done" {
			t.Fatalf("%v: %s", args, world.JSON(f))
		}
		return result(f)
	}
	for _, out := range []string{
		start + message + ok, start + ok, start + message + message + ok,
		start + strings.Replace(ok, "}", `,"exit_code":0}`, 1),
	} {
		if r := call(map[string]any{"out": out, "exit": 3}); r.Str("status") != "error" || r["exit_code"] != 3.0 {
			t.Errorf("%q and exit 3: %s", out, world.JSON(r))
		}
		if r := call(map[string]any{"out": out}); r.Str("status") != "ok" {
			t.Errorf("%q: %s", out, world.JSON(r))
		}
	}
	if r := call(map[string]any{"out": start + message + failed + notOK}); r.Str("status") != "error" || r.Str("content") != "hi\nbad luck" {
		t.Errorf("%s", world.JSON(r))
	}
	for _, bad := range []struct{ out, why string }{
		{"", "there is no start frame"},
		{"hello\n", "tool output: "},
		{"\n", "tool output: "},
		{"[]\n", "tool output: "},
		{message + ok, "start frame is not the first"},
		{start + start + ok, "start frame is not the first"},
		{start, "there is no done frame"},
		{start + message, "there is no done frame"},
		{start + strings.TrimSuffix(ok, "\n"), "the last line has no end"},
		{start + ok + message, "line after done"},
		{start + ok + "\n", "line after done"},
		{start + failed + ok, "done says"},
		{start + notOK, "done says"},
		{start + failed + failed + notOK, "second error frame"},
		{start + failed + message + notOK, "message after the error"},
		{start + "\n" + ok, "tool output: "},
		{start + "plain text\n" + ok, "tool output: "},
		{start + `{"type":"delta","run":"RUN","text":"x"}` + "\n" + ok, "unknown frame"},
		{start + `{"type":"tool_call","run":"RUN","id":"x","name":"raw","arguments":{}}` + "\n" + ok, "unknown frame"},
		{start + strings.Replace(message, "RUN", "01ARZ3NDEKTSV4RRFFQ69G5FAV", 1) + ok, "another run"},
		{start + strings.Replace(message, `"tool"`, `"assistant"`, 1) + ok, "role tool"},
		{start + strings.Replace(message, `"text","text"`, `"image","text"`, 1) + ok, "type"},
		{start + strings.Replace(message, `"role"`, `"extra":1,"role"`, 1) + ok, "tool output: "},
		{start + strings.Replace(message, `"role"`, `"type":"message","role"`, 1) + ok, "tool output: "},
		{start + strings.Replace(message, "hi", "<byte>", 1) + ok, "tool output: "},
		{start + strings.Replace(failed, "EIO", "oops", 1) + notOK, "errno name"},
		{start + strings.Replace(failed, "EIO", "EWAT", 1) + notOK, "errno name"},
		{start + strings.Replace(ok, "}", `,"exit_code":999}`, 1), "exit code 999"},
		{strings.Replace(start, "raw", "../raw", 1) + ok, "tool output: "},
	} {
		r := call(map[string]any{"out": bad.out})
		content := r.Str("content")
		if r.Str("status") != "error" || !strings.Contains(content, bad.why) || !strings.HasPrefix(content, "tool output: ") ||
			!strings.Contains(content, "noise on stderr") {
			t.Errorf("%q: %s", bad.out, world.JSON(r))
		}
	}
	if r := call(map[string]any{"out": strings.Repeat("x", 1000), "times": 3000}); r.Str("status") != "error" || !strings.Contains(r.Str("content"), "more than 1048576 bytes") {
		t.Errorf("a flood: %s", world.JSON(r))
	}
	if r := call(map[string]any{"out": start + message + ok}); r.Str("status") != "ok" || r.Str("content") != "hi" {
		t.Errorf("afterwards: %s", world.JSON(r))
	}
}
