package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/wire"
)

func TestSpeak(t *testing.T) {
	w := newWorld(t)
	var lines []string
	accepts := func(p *peer) {
		line, r := p.read()
		lines = append(lines, line)
		switch r := r.(type) {
		case *wire.Steer:
			p.say(r.ID, `{"type":"accepted","run":"RUN","op":"steer","client_id":"ID"}`)
		case *wire.FollowUp:
			p.say(r.ID, `{"type":"accepted","run":"RUN","op":"follow_up","client_id":"ID"}`)
		case *wire.Finish:
			p.say(r.ID, `{"type":"accepted","op":"finish"}`)
		}
	}
	w.serve(accepts, accepts, accepts, accepts, accepts)
	accepted := "accepted by run " + run1 + "\n"
	w.want(w.run("agent", "steer", "--id", "a", "coder", "not", "--that", "file"), 0, "", accepted)
	w.want(w.run("--quiet", "agent", "steer", "--id", "b", "coder", "--", "-x"), 0, "", "")
	w.want(w.runWith("now\nthe tests\n", "agent", "follow-up", "--session", "s1", "--id", "c", "coder", "-"), 0, "", accepted)
	w.want(w.run("agent", "finish", "--id", "d", "coder"), 0, "", "accepted\n")
	w.want(w.runWith("not read", "agent", "finish", "--id", "e", "coder", "enough"), 0, "", "accepted\n")
	for i, want := range []string{
		`{"op":"steer","id":"a","session":"default","input":"not --that file"}`,
		`{"op":"steer","id":"b","session":"default","input":"-x"}`,
		`{"op":"follow_up","id":"c","session":"s1","input":"now\nthe tests\n"}`,
		`{"op":"finish","id":"d","session":"default","input":"Come to an end now: answer with what you have, without any more tools."}`,
		`{"op":"finish","id":"e","session":"default","input":"enough"}`,
	} {
		if i >= len(lines) || lines[i] != want {
			t.Fatalf("requests\n%s\nwant as number %d\n%s", strings.Join(lines, "\n"), i, want)
		}
	}
}

func TestSpeakFails(t *testing.T) {
	w := newWorld(t)
	noRun := "ctx: agent steer: agent coder: session default has no active run\nhint: start one: ctx agent send --session default coder INPUT\n"
	w.want(w.run("agent", "steer", "coder", "x"), 1, "", noRun) // nobody listens
	for _, c := range []struct {
		answer string
		code   int
		err    string
	}{
		{`{"type":"error","code":"ENOENT","message":"no run"}`, 1, noRun},
		{`{"type":"error","code":"EINVAL","message":"id was used for other words"}`, 2, "ctx: agent steer: id was used for other words\n"},
		{`{"type":"error","code":"EAGAIN","message":"too many words wait"}`, 1, "ctx: agent steer: too many words wait\n"},
		{`{"type":"error","code":"ENOSYS","message":"coder is a program"}`, 69, "ctx: agent steer: coder is a program\n"},
		{`{"type":"accepted","op":"cancel"}`, 1, "ctx: agent steer: agent coder: answered steer with accepted\n"},
		{`{"type":"accepted","op":"steer","client_id":"other"}`, 1, "ctx: agent steer: agent coder: answered steer with accepted\n"},
		{`{"type":"news"}`, 1, "ctx: agent steer: agent coder: answered steer with news\n"},
	} {
		w.serve(func(p *peer) { p.read(); p.say("m", c.answer) })
		w.want(w.run("agent", "steer", "--id", "m", "coder", "x"), c.code, "", c.err)
	}
	w.serve(func(p *peer) { p.read() })
	w.want(w.run("agent", "steer", "--id", "m", "coder", "x"), 1, "", "ctx: agent steer: the agent's process closed the connection before it said whether it accepted\n"+
		"hint: the same again with --id m is said at most once\n")
	for _, args := range [][]string{{"steer", "coder"}, {"follow-up", "coder"}, {"steer", "coder", ""}, {"finish", "coder", "a\x00b"}, {"finish", "--id", "a b", "coder"}, {"steer", "--session", "a/b", "coder", "x"}} {
		if got := w.run(append([]string{"agent"}, args...)...); got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, "ctx: agent "+args[0]+": ") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := w.run("agent", "finish", "nobody"); got.code != 1 || !strings.Contains(got.err, `no agent "nobody"`) {
		t.Errorf("%+v", got)
	}
}

// What only models have: reasoning, candidates, windows, and frames of later
// versions.
func TestSendToAModelAgent(t *testing.T) {
	w := newWorld(t)
	run := answering(start,
		`{"type":"lifecycle","run":"RUN","state":"loading"}`,
		`{"type":"candidate_error","id":"RUN.2","run":"RUN","model":"lab/large","code":"EREMOTEIO","message":"busy\u001b[2J"}`,
		`{"type":"context","id":"RUN.3","run":"RUN","dropped_messages":12,"bytes":508213}`,
		`{"type":"provider_waiting","run":"RUN","for":"network"}`,
		`{"type":"reasoning_delta","run":"RUN","text":"First I"}`,
		`{"type":"reasoning_delta","run":"RUN","text":" look.\nThen\u001b[2J"}`,
		`{"type":"delta","run":"RUN","text":"Let me"}`,
		`{"type":"delta","run":"RUN","text":" see."}`,
		`{"type":"message","id":"RUN.4","run":"RUN","role":"assistant","content":[{"type":"text","text":"Let me see."}]}`,
		`{"type":"usage","id":"RUN.5","run":"RUN","input_tokens":10,"output_tokens":2,"cached_tokens":7}`,
		`{"type":"steering_delivered","id":"RUN.6","run":"RUN","client_id":"m-2","op":"steer","text":"not\nthat"}`,
		`{"type":"reasoning_delta","run":"RUN","text":"Hm."}`,
		`{"type":"usage_uncertain","id":"RUN.7","run":"RUN","kind":"assistant","model":"lab/large","reason":"cut off"}`,
		done)
	notes := `model lab/large was passed over: busy\x1b[2J (EREMOTEIO)` + "\n" +
		"for want of room the model is not shown the oldest 12 messages\n"
	w.serve(run, run, run)
	w.want(w.run("agent", "send", "coder", "x"), 0, "Let me see.\n", notes+"told: not\\nthat\n")
	w.want(w.run("--quiet", "agent", "send", "coder", "x"), 0, "Let me see.\n", "")
	w.want(w.run("--verbose", "agent", "send", "coder", "x"), 0, "Let me see.\n",
		"model: loading\n"+notes+"reasoning: First I look.\n"+`reasoning: Then\x1b[2J`+"\n"+
			"tokens: 10 input, 7 cache read, 0 cache write, 2 output\ntold: not\\nthat\nreasoning: Hm.\ntokens: unknown: cut off\n")
}

// What was said into the run is among its frames.
func TestRawOfASteeredRun(t *testing.T) {
	w := newWorld(t)
	frames := []string{start, `{"type":"accepted","id":"RUN.2","run":"RUN","op":"steer","client_id":"m-2","input":"x"}`,
		`{"type":"steering_delivered","id":"RUN.3","run":"RUN","client_id":"m-2","op":"steer","text":"x"}`, done}
	w.serve(answering(frames...))
	want := strings.NewReplacer("RUN", run1, "ID", "m1").Replace(strings.Join(frames, "\n") + "\n")
	w.want(w.run("agent", "send", "--raw", "--id", "m1", "coder", "x"), 0, want, "")
}

// modelled adds the model agent m, with rules and a skill around its workspace.
func (w *world) modelled() {
	w.t.Helper()
	skill := filepath.Join(w.dir, ".agents/skills/sew")
	if err := errors.Join(
		os.WriteFile(filepath.Join(w.dir, "role.md"), []byte("Be {{agent}}.\n"), 0o600),
		os.WriteFile(filepath.Join(w.dir, "AGENTS.md"), []byte("Tabs.\n"), 0o600),
		os.MkdirAll(skill, 0o700),
		os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte("---\nname: sew\ndescription: needle\n---\n"), 0o600),
	); err != nil {
		w.t.Fatal(err)
	}
	w.want(w.run("agent", "new", "m", "--model", "main", "--tool", "fs.read", "--native", "fs.list", "--system-prompt", "role.md"), 0, "", "made agent m\n")
}

func TestPrompt(t *testing.T) {
	w := newWorld(t)
	w.modelled()
	got := w.run("agent", "prompt", "m")
	for _, part := range []string{
		"# m, an agent of CortexFS\n", "Your only native callable tool is tsh.\n", "may be called directly: fs.list.\n", "Be {{agent}}.\n",
		"### /workspace/AGENTS.md\n\nTabs.\n", "- sew: needle (/workspace/.agents/skills/sew/SKILL.md)\n", prompt.NoTools, prompt.NoHistory,
	} {
		if !strings.Contains(got.out, part) {
			t.Errorf("no %q in\n%s", part, got.out)
		}
	}
	if got.code != 0 || got.err != "" {
		t.Errorf("%+v", got)
	}
	sub := filepath.Join(w.dir, "sub")
	if err := errors.Join(os.Mkdir(sub, 0o700), os.WriteFile(filepath.Join(sub, "AGENTS.md"), []byte("Spaces.\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := w.run("agent", "prompt", "--workspace", "sub", "m"); got.code != 0 || !strings.Contains(got.out, "/workspace/AGENTS.md\n\nSpaces.") {
		t.Errorf("another workspace: %+v", got)
	}
	if got := w.run("agent", "prompt", "--cwd", "/workspace/sub", "m"); got.code != 0 || !strings.Contains(got.out, "/workspace/sub/AGENTS.md\n\nSpaces.") {
		t.Errorf("another cwd: %+v", got)
	}
	if got := w.run("agent", "prompt", "--json", "m"); got.code != 0 || !strings.HasPrefix(got.out, `{"agent":"m","model":"debug/echo","window_tokens":131072,"system":"# m`) ||
		!strings.Contains(got.out, `"tools":[{"name":"fs.list",`) || !strings.Contains(got.out, `{"name":"tsh",`) {
		t.Errorf("json: %+v", got)
	}
	for _, c := range []struct {
		args []string
		code int
		part string
	}{
		{[]string{"coder"}, 2, "is a program"},
		{[]string{"nobody"}, 1, "nobody"},
		{[]string{"--workspace", "gone", "m"}, 1, "gone"},
		{[]string{"--workspace", w.layout.Root, "m"}, 2, "belongs to the runtime"},
		{[]string{"--cwd", "sub", "m"}, 2, "not an absolute path"},
		{[]string{"--session", "s", "m"}, 1, `no session "s"`},
	} {
		if got := w.run(append([]string{"agent", "prompt"}, c.args...)...); got.code != c.code || got.out != "" || !strings.Contains(got.err, c.part) {
			t.Errorf("%q: %+v", c.args, got)
		}
	}

	// What a run would pass over or leave out is told, and the rest is shown.
	w.dir = w.layout.Root
	if got := w.run("agent", "prompt", "m"); got.code != 0 || !strings.Contains(got.err, "no workspace is looked at: ") || !strings.Contains(got.out, "# Rules\n\n(empty)") {
		t.Errorf("in the tree: %+v", got)
	}
	w.dir = sub
	w.want(w.runWith("allow m_t tool:tsh execute", "agent", "set", "m", "policy", "-"), 0, "", "")
	if got := w.run("agent", "prompt", "m"); got.code != 0 || !strings.Contains(got.err, "model main would be passed over: ") || !strings.Contains(got.out, "Spaces.") || strings.Contains(got.out, "fs.list") {
		t.Errorf("without policy: %+v", got)
	}
}

func TestInspectAModelAgent(t *testing.T) {
	w := newWorld(t)
	w.modelled()
	echo := filepath.Join(w.layout.Root, "model/debug/echo.d/fallback")
	if err := os.WriteFile(echo, []byte("debug/tools\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := w.run("agent", "inspect", "m")
	if !strings.Contains(got.out, "\nmodel\tmain\nresolved\tdebug/echo\nwindow\tauto\nwindow_tokens\t131072\neffort\tauto\nfallback\tdebug/tools\nnative\tfs.list\n"+
		"refused\tdebug/tools: agent m may not use model debug/tools: ") {
		t.Errorf("%+v", got)
	}
	if got := w.run("agent", "env", "m"); !strings.Contains(got.out, "\nCTX_CONTEXT_WINDOW_TOKENS=131072\n") {
		t.Errorf("env: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(echo), "limit"), []byte("unknown\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := w.run("agent", "inspect", "--json", "m"); !strings.Contains(got.out, `"resolved":"debug/echo","window":"auto","window_tokens":null,`) {
		t.Errorf("unknown: %+v", got)
	}
	if got := w.run("agent", "env", "m"); got.code != 0 || strings.Contains(got.out, "WINDOW") {
		t.Errorf("env of an unknown window: %+v", got)
	}
	if got := w.run("agent", "tools", "m"); !strings.Contains(got.out, "fs.list\tallowed\tdirect\t") || !strings.Contains(got.out, "fs.read\tallowed\ttsh\t") {
		t.Errorf("tools: %+v", got)
	}
	if got := w.run("agent", "inspect", "--json", "coder"); !strings.Contains(got.out, `"model":"","resolved":"","window":"","window_tokens":null,"effort":"","fallback":[],"native":[],"refused":[]`) {
		t.Errorf("of a program: %+v", got)
	}
}
