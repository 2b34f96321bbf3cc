package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// TestBadAgents: every broken rule of the envelope ends the run with EPROTO, or
// the limit's own code; nothing of the bad step is recorded as an answer.
func TestBadAgents(t *testing.T) {
	w := ready(t, "fs.stat")
	stat := `call fs.stat {"path":"/workspace"}`
	for _, c := range []struct{ name, input, code string }{
		{"not-json", "raw hello", "EPROTO"},
		{"empty-line", "raw ", "EPROTO"},
		{"array", "raw []", "EPROTO"},
		{"duplicate", `raw {"type":"delta","type":"delta","run":"RUN","text":"x"}`, "EPROTO"},
		{"start", `raw {"type":"start","run":"RUN"}`, "EPROTO"},
		{"done", `raw {"type":"done","run":"RUN","status":"ok"}`, "EPROTO"},
		{"result", `raw {"type":"tool_result","run":"RUN","call":"c","status":"ok","content":"x"}`, "EPROTO"},
		{"approval", `raw {"type":"approval_result","run":"RUN","call":"c","decision":"allow_once"}`, "EPROTO"},
		{"policy", `raw {"type":"tool_policy","run":"RUN","call":"c","allowed":true}`, "EPROTO"},
		{"lifecycle", `raw {"type":"lifecycle","run":"RUN"}`, "EPROTO"},
		{"usage", `raw {"type":"usage","run":"RUN","input_tokens":1,"output_tokens":1}`, "EPROTO"},
		{"fatal-error", `raw {"type":"error","run":"RUN","code":"EIO","message":"x"}`, "EPROTO"},
		{"user-message", `raw {"type":"message","run":"RUN","role":"user","content":[{"type":"text","text":"x"}]}`, "EPROTO"},
		{"tool-message", `raw {"type":"message","run":"RUN","role":"tool","content":[{"type":"tool_result","text":"x"}]}`, "EPROTO"},
		{"other-run", `raw {"type":"delta","run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","text":"x"}`, "EPROTO"},
		{"no-run", `raw {"type":"delta","text":"x"}`, "EPROTO"},
		{"with-id", `raw {"type":"delta","id":"RUN.1","run":"RUN","text":"x"}`, "EPROTO"},
		{"after-call", stat + "\nsay more", "EPROTO"},
		{"two-calls", stat + "\n" + stat, "EPROTO"},
		{"call-name", `raw {"type":"tool_call","run":"RUN","id":"c","name":"../x","arguments":{}}`, "EPROTO"},
		{"call-id", `raw {"type":"tool_call","run":"RUN","id":"","name":"fs.stat","arguments":{}}`, "EPROTO"},
		{"call-args", `raw {"type":"tool_call","run":"RUN","id":"c","name":"fs.stat","arguments":[1]}`, "EPROTO"},
		{"unfinished", `tail {"type":"delta","run":"RUN","text":"x"}`, "EPROTO"},
		{"exit", "say fine\nexit 3", "EPROTO"},
		{"exit-silent", "exit 1", "EPROTO"},
		{"killed", "exit 137", "EPROTO"},
		{"long-line", "line 300000", "EPROTO"},
		{"flood", "flood 2000000", "EPROTO"},
		{"same-id", `raw {"type":"tool_call","run":"RUN","id":"twice","name":"fs.stat","arguments":{"path":"."}}`, "EPROTO"},
		{"nine-calls", stat, "E2BIG"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := w.Dial("a")
			conn.Send(send("m", "bad-"+c.name, w.Workspace, c.input))
			f := conn.Until("done")
			if world.Last(f).Str("status") != "error" {
				t.Fatalf("%s", world.JSON(f))
			}
			if e := f[len(f)-2]; e.Type() != "error" || e.Str("code") != c.code || e.Str("message") == "" {
				t.Errorf("error %v", e)
			}
			ledger := w.Read(w.Session("a", "bad-"+c.name) + "/messages.jsonl")
			for line := range strings.Lines(ledger) {
				var r struct {
					Type, Role string
					Content    []struct{ Type string }
				}
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				if r.Type == "entry" && r.Role == "assistant" && r.Content[0].Type == "text" {
					t.Errorf("recorded as an answer: %s", line)
				}
			}
			if n := strings.Count(ledger, `"type":"checkpoint"`); n != 1 {
				t.Errorf("%d checkpoints", n)
			}
			calls := strings.Count(ledger, `"type":"tool_call","call"`)
			results := strings.Count(ledger, `"type":"tool_result","call"`)
			if calls != results || c.name == "nine-calls" && calls != 8 {
				t.Errorf("%d calls and %d results", calls, results)
			}
		})
	}
}

// TestGoodAgents: what is accepted, and what comes of it.
func TestGoodAgents(t *testing.T) {
	w := ready(t, "fs.read", "shell.exec")
	eight := strings.Repeat("call fs.read {\"path\":\"README.md\"}\n--\n", 8)
	for _, c := range []struct{ name, input, kinds, text string }{
		{"message", "say hi", "start message done", "hi"},
		{"deltas", "delta a\ndelta b", "start message done", "ab"},
		{"deltas-before-call", "delta lost\ncall fs.read {\"path\":\"README.md\"}\n--\nsay end", "start tool_call tool_policy tool_result message done", "end"},
		{"deltas-and-message", "delta a\ndelta b\nsay whole", "start message done", "whole"},
		{"silence", "\n", "start done", ""},
		{"recoverable", "recoverable try again\nsay ok", "start error message done", "ok"},
		{"text-and-call", "say first\ncall fs.read {\"path\":\"README.md\"}\n--\nsay second",
			"start message tool_call tool_policy tool_result message done", "second"},
		{"eight", eight + "say done", "start" + strings.Repeat(" tool_call tool_policy tool_result", 8) + " message done", "done"},
		{"words", `call fs.read {"args":["README.md"]}` + "\n--\nobserve", "start tool_call tool_policy tool_result message done", `one\ntwo`},
		{"through-tsh", `call tsh {"args":["fs.read","README.md"]}` + "\n--\nobserve", "start tool_call tool_policy tool_result message done", `"name":"tsh"`},
		{"refused", `call fs.list {}` + "\n--\nobserve", "start tool_call tool_policy tool_result message done", `"status":"error"`},
		{"schema", `call fs.read {"file":"README.md"}` + "\n--\nobserve", "start tool_call tool_policy tool_result message done", `do not fit`},
		{"failed-command", `call shell.exec {"cmd":"echo out; exit 3"}` + "\n--\nobserve", "start tool_call tool_policy tool_result message done", `out`},
		{"stderr", "stderr 300000\nsay fine", "start message done", "fine"},
		{"nearly-too-long", "delta " + strings.Repeat("x", 200000), "start message done", "xxx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := w.Dial("a")
			f := conn.Ask(send("m", "good-"+c.name, w.Workspace, c.input), "done")
			if got := world.Kinds(f); got != c.kinds || world.Last(f).Str("status") != "ok" {
				t.Fatalf("%s\n%.2000s", got, world.JSON(f))
			}
			if c.text != "" && !strings.Contains(f[len(f)-2]["content"].([]any)[0].(map[string]any)["text"].(string), c.text) {
				t.Errorf("answer %.500s", world.JSON(f[len(f)-2]))
			}
		})
	}
}

// TestPumpedTogether: much output before the envelope is read, and a long
// envelope at the same time, do not block one another.
func TestPumpedTogether(t *testing.T) {
	w := ready(t)
	w.Write(w.Workspace+"/.early", "900000")
	c := w.Dial("a")
	input := "say read it\n" + strings.Repeat("\n", 500000)
	f := c.Ask(send("m", "early", w.Workspace, input), "done")
	if world.Last(f).Str("status") != "ok" || !strings.Contains(world.JSON(f), "read it") {
		t.Errorf("%.1000s", world.JSON(f[len(f)-2:]))
	}
}

// TestEnvironment: exactly the allow-list, in the executable and in its tools;
// no secret of the daemon's anywhere the sandbox can see.
func TestEnvironment(t *testing.T) {
	w := ready(t, "shell.exec")
	w.MustCtx("agent", "set", "a", "env", "EXTRA=1\nCTX_AGENT=forged\nPATH=/evil\n")
	c := w.Dial("a")
	names := func(env string) []string {
		var n []string
		for line := range strings.Lines(env) {
			name, _, _ := strings.Cut(line, "=")
			n = append(n, name)
		}
		slices.Sort(n)
		return n
	}
	f := c.Ask(send("m", "env", w.Workspace, "env"), "done")
	env := f[len(f)-2]["content"].([]any)[0].(map[string]any)["text"].(string)
	want := []string{"CTX_AGENT", "CTX_AGENT_SUBJECT", "CTX_CONTROL_SOCKET", "CTX_HOME", "CTX_PATH", "CTX_ROOT", "CTX_RUN_ID", "CTX_SESSION", "CTX_STEP",
		"EXTRA", "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
	if got := names(env); !slices.Equal(got, want) {
		t.Errorf("the executable has %v, want %v", got, want)
	}
	for _, kv := range []string{"CTX_ROOT=/ctx", "HOME=/home/agent", "CTX_AGENT=a", "CTX_AGENT_SUBJECT=a_t", "CTX_STEP=0", "CTX_SESSION=env"} {
		if !strings.Contains("\n"+env+"\n", "\n"+kv+"\n") {
			t.Errorf("no %s in %q", kv, env)
		}
	}
	f = c.Ask(tsh("t", "env", w.Workspace, "shell.exec", "cat /proc/*/environ | tr '\\0' '\\n'; cat /proc/*/cmdline | tr '\\0' ' '; ls -l /proc/self/fd /proc/1/fd"), "done")
	out := f[len(f)-2].Str("content")
	if strings.Contains(out, "hunter2") || strings.Contains(out, "XDG_RUNTIME_DIR") || strings.Contains(out, w.Dir) {
		t.Errorf("the daemon's environment or paths are visible inside:\n%s", out)
	}
	if !strings.Contains(out, "CTX_AGENT=a") {
		t.Errorf("the probe saw nothing: %q", out)
	}
}

// TestEnvelope: the invocation, and that history repeats neither input nor
// observation.
func TestEnvelope(t *testing.T) {
	w := ready(t, "fs.read")
	c := w.Dial("a")
	read := `call fs.read {"path":"README.md"}`
	c.Ask(send("m1", "e", w.Workspace, "say before"), "done")
	f := c.Ask(send("m2", "e", w.Workspace, read+"\n--\n"+read+"\n--\nenvelope"), "done")
	body := f[len(f)-2]["content"].([]any)[0].(map[string]any)["text"].(string)
	var inv map[string]any
	if err := json.Unmarshal([]byte(body), &inv); err != nil || !strings.HasSuffix(body, "}\n") {
		t.Fatalf("%v in %q", err, body)
	}
	if inv["schema"] != "cortexfs.agent-invocation/v1" || inv["step"] != 2.0 || inv["run"] != f[0]["run"] {
		t.Errorf("%v", inv)
	}
	var roles []string
	var history []struct{ Role string }
	if err := json.Unmarshal([]byte(inv["history_messages"].(string)), &history); err != nil {
		t.Fatal(err)
	}
	for _, m := range history {
		roles = append(roles, m.Role)
	}
	if got := strings.Join(roles, " "); got != "user assistant user assistant tool" {
		t.Errorf("history of step 2: %s", got)
	}
	obs := inv["observation"].(map[string]any)
	if obs["tool_call_id"] != "call-1" || obs["name"] != "fs.read" || obs["status"] != "ok" || obs["content"] != readme || obs["truncated"] != false {
		t.Errorf("observation %v", obs)
	}
	// A long result is normalised to the observation's bound.
	w.Write(w.Workspace+"/long", strings.Repeat("0123456789abcde\n", 4000))
	aged(t, w.Workspace)
	f = c.Ask(send("m3", "e", w.Workspace, `call fs.read {"path":"long"}`+"\n--\nenvelope"), "done")
	body = f[len(f)-2]["content"].([]any)[0].(map[string]any)["text"].(string)
	if err := json.Unmarshal([]byte(body), &inv); err != nil {
		t.Fatal(err)
	}
	obs = inv["observation"].(map[string]any)
	if n := len(obs["content"].(string)); n > 16<<10 || n < 8<<10 || obs["truncated"] != true {
		t.Errorf("observation of %d bytes, truncated %v", n, obs["truncated"])
	}
}

// TestRefusedFiles: an agent whose files are refused answers every request with
// one error that names the file.
func TestRefusedFiles(t *testing.T) {
	w := ready(t)
	control := w.Root + "/agent/a.d"
	for name, breakIt := range map[string]func() string{
		"policy": func() string { w.Write(control+"/policy", "# nothing\n"); return "policy" },
		"perm":   func() string { w.Write(control+"/perm", "rwz\n"); return "perm" },
		"crlf":   func() string { w.Write(control+"/cwd", "/workspace\r\n"); return "cwd" },
		"no-lf":  func() string { w.Write(control+"/cwd", "/workspace"); return "cwd" },
		"lines":  func() string { w.Write(control+"/cwd", "/workspace\n/tmp\n"); return "cwd" },
		"nul":    func() string { w.Write(control+"/cwd", "/work\x00space\n"); return "cwd" },
		"loose":  func() string { os.Chmod(control+"/policy", 0o666); return "policy" },
		"loosed": func() string { os.Chmod(control, 0o777); return "a.d" },
		"link": func() string {
			os.Rename(control+"/policy", w.Dir+"/policy")
			os.Symlink(w.Dir+"/policy", control+"/policy")
			return "policy"
		},
		"uid":    func() string { w.Write(control+"/uid", "4242\n"); return "uid" },
		"window": func() string { w.Write(control+"/window", "0\n"); return "window" },
		"root":   func() string { w.Write(control+"/root", "/elsewhere\n"); return "root" },
		"dir": func() string {
			os.Symlink(control+".moved", control+".moved")
			unix.Renameat2(unix.AT_FDCWD, control, unix.AT_FDCWD, control+".moved", unix.RENAME_EXCHANGE)
			return "a.d"
		},
	} {
		t.Run(name, func(t *testing.T) {
			saved := w.Dir + "/saved-" + name
			if out, err := exec.Command("cp", "-a", control, saved).CombinedOutput(); err != nil {
				t.Fatal(err, string(out))
			}
			file := breakIt()
			for _, line := range []string{`{"op":"ping"}`, send("m-"+name, "x", w.Workspace, "say no"), tsh("t", "x", w.Workspace, "fs.read", "x"), `{"op":"status"}`, `{"op":"resume"}`} {
				f := w.Dial("a").Ask(line, "")
				if f[0].Type() != "error" || !strings.Contains(f[0].Str("message"), file) {
					t.Errorf("%.60s: %v, want an error naming %s", line, f[0], file)
				}
			}
			if err := unix.Renameat2(unix.AT_FDCWD, saved, unix.AT_FDCWD, control, unix.RENAME_EXCHANGE); err != nil {
				t.Fatal(err)
			}
			os.RemoveAll(saved)
			os.RemoveAll(control + ".moved")
			w.Dial("a").Ask(`{"op":"ping"}`, "pong")
		})
	}
}

// TestBadTools: a tool that is not what it should be is refused with a code, and
// the run goes on.
func TestBadTools(t *testing.T) {
	w := world.New(t)
	dir := w.Root + "/tool/mine"
	good := func() {
		os.Chmod(w.Root+"/tool", 0o755)
		os.RemoveAll(dir)
		os.RemoveAll(dir + ".d")
		os.WriteFile(dir, []byte("#!/bin/sh\necho ran\n"), 0o755)
		os.Mkdir(dir+".d", 0o755)
		os.WriteFile(dir+".d/effect", []byte("host_process\n"), 0o644)
	}
	good()
	w.Puppet("a", "mine")
	w.MustCtx("agent", "send", "a", "say hello")
	for name, c := range map[string]struct {
		breakIt func()
		code    string
	}{
		"good":       {func() {}, ""},
		"missing":    {func() { os.Remove(dir) }, "tool_not_found"},
		"loose-dir":  {func() { os.Chmod(w.Root+"/tool", 0o777) }, "not_regular"},
		"link":       {func() { os.Rename(dir, dir+"-real"); os.Symlink(dir+"-real", dir) }, "not_regular"},
		"dangling":   {func() { os.Remove(dir); os.Symlink("/nowhere", dir) }, "not_regular"},
		"directory":  {func() { os.Remove(dir); os.Mkdir(dir, 0o755) }, "not_regular"},
		"not-exec":   {func() { os.Chmod(dir, 0o644) }, "linux_permission"},
		"loose":      {func() { os.Chmod(dir, 0o777) }, "not_regular"},
		"bad-schema": {func() { os.WriteFile(dir+".d/schema", []byte("{"), 0o644) }, "invalid_tool_arguments"},
		"dir-schema": {func() { os.Mkdir(dir+".d/schema", 0o755) }, "not_regular"},
		"policy":     {func() { os.WriteFile(dir+".d/policy", nil, 0o644) }, "tool_policy"},
		"unknown":    {func() { os.Remove(dir + ".d/effect") }, "effect_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			good()
			c.breakIt()
			f := w.Dial("a").Ask(send("m-"+name, "bt", w.Workspace, `call mine {"args":[]}`+"\n--\nobserve"), "done")
			if got := world.Kinds(f); got != "start tool_call tool_policy tool_result message done" {
				t.Fatalf("%s: %s", got, world.JSON(f))
			}
			policy, result := f[2], f[3]
			if policy.Str("code") != c.code || policy["allowed"] != (c.code == "") {
				t.Errorf("policy %v, want code %q", policy, c.code)
			}
			if c.code == "" && result.Str("content") != "ran\n" || c.code != "" && strings.Contains(result.Str("content"), "ran") {
				t.Errorf("result %v", result)
			}
		})
	}
}

// TestUnexecutableTools: a file that is admitted and can not be executed fails
// its call with the reason; the run goes on.
func TestUnexecutableTools(t *testing.T) {
	w := world.New(t)
	dir := w.Root + "/tool/mine"
	write := func(text string) { os.WriteFile(dir, []byte(text), 0o755) }
	write("#!/bin/sh\n")
	os.Mkdir(dir+".d", 0o755)
	os.WriteFile(dir+".d/effect", []byte("host_process\n"), 0o644)
	w.Puppet("a", "mine")
	w.MustCtx("agent", "send", "a", "say hello")
	for name, text := range map[string]string{
		"interpreter": "#!/nowhere/python\n", "no-shebang": "echo hello\n", "garbage": "\x7fELF garbage", "empty": "",
	} {
		write(text)
		f := w.Dial("a").Ask(send("m-"+name, "un", w.Workspace, `call mine {"args":[]}`+"\n--\nobserve"), "done")
		if got := world.Kinds(f); got != "start tool_call tool_policy tool_result message done" || world.Last(f).Str("status") != "ok" {
			t.Fatalf("%s: %s", name, world.JSON(f))
		}
		if r := f[3]; r.Str("status") != "error" || !strings.Contains(r.Str("content"), "/ctx/tool/mine") || strings.Contains(r.Str("content"), w.Dir) {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// TestLooseTree: who can write the directories above an agent's controls could
// exchange them.
func TestLooseTree(t *testing.T) {
	w := ready(t)
	for _, dir := range []string{w.Root, w.Root + "/agent"} {
		os.Chmod(dir, 0o777)
		if f := w.Dial("a").Ask(`{"op":"ping"}`, "")[0]; f.Type() != "error" || f.Str("code") != "EACCES" || !strings.Contains(f.Str("message"), dir) {
			t.Errorf("%s: %v", dir, f)
		}
		os.Chmod(dir, 0o755)
	}
	w.Dial("a").Ask(`{"op":"ping"}`, "pong")
}

// TestServerThatCanNotStart: a client hears why, and does not wait for a server
// that never comes.
func TestServerThatCanNotStart(t *testing.T) {
	w := ready(t)
	w.MustCtx("agent", "stop", "a")
	was, err := os.Stat(w.Layout.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(w.Layout.Runtime, 0o777)
	defer os.Chmod(w.Layout.Runtime, was.Mode().Perm())
	r := w.Ctx("agent", "send", "a", "say no")
	if r.Code != 13 || !strings.Contains(r.Err, w.Layout.Runtime) || !strings.Contains(r.Err, "wider") {
		t.Errorf("exit %d: %s", r.Code, r.Err)
	}
}
