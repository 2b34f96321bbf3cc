package e2e

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// viaTsh is a call of a tool through tsh, as a provider sends it.
func viaTsh(id string, words ...string) provider.Call {
	return provider.Call{ID: id, Name: "tsh", Arguments: world.JSON(map[string]any{"args": words})}
}

// TestAgentImprovesItself: a model agent changes its own instructions in one run;
// that run goes on with those it began with, the next one begins with the new.
func TestAgentImprovesItself(t *testing.T) {
	const old, improved = "Speak plainly.\n", "Speak in \"rhymes\", – briefly.\n"
	w, s := lab(t, provider.InTurn(t,
		provider.Calls(viaTsh("one", "agent.update", "system.md", improved)),
		provider.Calls(viaTsh("two", "agent.update", "prompt.template.md", "TOLD: {{agent_instructions}}\n{{runtime_contract}}")),
		provider.Text("I have learned."),
		provider.Text("Well."),
	), "agent.update")
	w.MustCtx("agent", "set", "m", "system.md", old)
	if out := w.MustCtx("agent", "send", "m", "learn"); out != "I have learned.\n" {
		t.Errorf("said %q", out)
	}
	if out := w.MustCtx("agent", "send", "m", "go on"); out != "Well.\n" {
		t.Errorf("said %q", out)
	}
	var told []string
	for _, r := range s.Requests() {
		told = append(told, r.Chat(t).Messages[0].Content)
	}
	for i, text := range told {
		now := i == 3
		if strings.Contains(text, strings.TrimSpace(old)) == now || strings.Contains(text, strings.TrimSpace(improved)) != now || strings.HasPrefix(text, "TOLD: ") != now {
			t.Errorf("request %d was told:\n%s", i+1, text)
		}
	}
	if shown := w.MustCtx("agent", "prompt", "m"); !strings.HasPrefix(shown, "TOLD: "+improved) {
		t.Errorf("ctx agent prompt shows\n%s", shown)
	}
	if told := w.MustCtx("agent", "history", "m"); !strings.Contains(told, "changed its own system.md: "+fmt.Sprint(len(improved))+" B") {
		t.Errorf("ctx agent history tells\n%s", told)
	}
	results := s.Requests()[1].Chat(t).Messages
	if last := results[len(results)-1].Content; !strings.Contains(last, fmt.Sprintf("system.md has %d bytes now", len(improved))) {
		t.Errorf("the model was told %q", last)
	}
}

// update is a frame of agent.update, of a puppet's run.
func update(id, agent, control, content string) string {
	return world.JSON(map[string]any{
		"op": "agent.update", "request_id": id, "agent": agent, "session": "default", "run": "RUN", "control": control, "content": content,
	})
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// answers are the messages of a puppet.
func answers(f []world.Frame) (all []string) {
	for _, x := range f {
		if x.Type() != "message" {
			continue
		}
		parts, _ := x["content"].([]any)
		for _, p := range parts {
			text, _ := p.(map[string]any)["text"].(string)
			all = append(all, strings.Split(text, "\n")...)
		}
	}
	return all
}

// TestCapabilitySocket: what an executable agent gets of its run's capability
// socket, and that everything but the one thing is refused, with its own code.
func TestCapabilitySocket(t *testing.T) {
	w := world.New(t)
	w.Puppet("a", "agent.update")
	w.Puppet("b")
	w.MustCtx("agent", "set", "a", "system.md", "as it was\n")
	w.MustCtx("agent", "set", "b", "system.md", "as it was\n")
	w.Ctx("agent", "tsh", "a", "--", "help") // starts what has to run
	c := w.Dial("a")
	ping := strings.ReplaceAll(`{"op":"ping","request_id":"p","agent":"a","session":"default","run":"RUN"}`, "\n", "")
	policy := w.Read(w.Root + "/agent/a.d/policy")
	var script, want []string
	for _, line := range []struct{ frame, reply string }{
		{ping, `{"type":"pong","request_id":"p"}`},
		{update("one", "a", "policy", "allow a_t tool:bash execute\n"), `EINVAL`},
		{update("one", "a", "system.md", "used up\n"), `EALREADY`},
		{update("two", "b", "system.md", "not mine\n"), `EINVAL`},
		{strings.Replace(update("two", "a", "system.md", "x"), `"default"`, `"other"`, 1), `EINVAL`},
		{strings.Replace(update("two", "a", "system.md", "x"), `RUN`, `01KB9QZ3M8T5V2N7X4C6D1E0FG`, 1), `EINVAL`},
		{update("two", "a", "system.md", strings.Repeat("x", 8193)), `EINVAL`},
		{update("three", "a", "system.md", "a\x00b"), `EINVAL`},
		{update("four", "a", "../b.d/system.md", "x"), `EINVAL`},
		{strings.Replace(update("five", "a", "system.md", "x"), "{", `{"uid":0,`, 1), `EINVAL`},
		{`{"op":"agent.create","request_id":"x"}`, `ENOSYS`},
		{`{"op":"agent.update"`, `EINVAL`},
		{update("six", "a", "system.md", strings.Repeat("x", 20_000)), `EMSGSIZE`},
		{update("seven", "a", "system.md", "improved\n"), `{"type":"agent.updated","request_id":"seven"}`},
		{update("seven", "a", "system.md", "replayed\n"), `EALREADY`},
	} {
		script, want = append(script, "control "+line.frame), append(want, line.reply)
	}
	f := c.Ask(world.JSON(map[string]any{"op": "send", "id": "m", "session": "default", "workspace": w.Workspace, "input": strings.Join(script, "\n")}), "done")
	got := answers(f)
	if len(got) != len(want) {
		t.Fatalf("%d answers: %s", len(got), world.JSON(f))
	}
	for i, reply := range want {
		if !strings.HasPrefix(reply, "{") {
			reply = `"code":"` + reply + `"`
		}
		if !strings.Contains(got[i], reply) {
			t.Errorf("%.200s\nis answered %s, not %s", script[i], got[i], reply)
		}
	}
	var changed []string
	for _, x := range f {
		if x.Type() == "prompt_changed" {
			changed = append(changed, world.JSON([]any{x["id"] != nil, x["control"], x["bytes"], x["request_id"], x["digest"]}))
		}
	}
	if want := `[true,"system.md",9,"seven","sha256:` + digest("improved\n") + `"]`; len(changed) != 1 || changed[0] != want {
		t.Errorf("recorded is %v, not %s", changed, want)
	}
	if a, b := w.Read(w.Root+"/agent/a.d/system.md"), w.Read(w.Root+"/agent/b.d/system.md"); a != "improved\n" || b != "as it was\n" {
		t.Errorf("the prompts are %q and %q", a, b)
	}
	if now := w.Read(w.Root + "/agent/a.d/policy"); now != policy {
		t.Errorf("the policy is %q", now)
	}
	// An agent that may not use the tool may not do what it does.
	f = w.Dial("b").Ask(world.JSON(map[string]any{"op": "send", "id": "m", "workspace": w.Workspace, "input": "control " + update("x", "b", "system.md", "x") + "\ncontrol " + update("y", "a", "system.md", "x")}), "done")
	if got := answers(f); len(got) != 2 || !strings.Contains(got[0], `"EACCES"`) || !strings.Contains(got[1], `"EINVAL"`) {
		t.Errorf("without the right: %s", world.JSON(f))
	}
}

// TestCapabilitySocketFromOutside: the socket lies on the host while a run goes on,
// and hears nobody there: not the agent's owner, not root, not after the run.
func TestCapabilitySocketFromOutside(t *testing.T) {
	t.Run("its own user", func(t *testing.T) { fromOutside(t, world.New(t)) })
	t.Run("perhaps another", func(t *testing.T) { fromOutside(t, world.NewUser(t)) })
}

func fromOutside(t *testing.T, w *world.World) {
	w.Puppet("a", "agent.update")
	w.MustCtx("agent", "set", "a", "system.md", "as it was\n")
	w.Ctx("agent", "tsh", "a", "--", "help")
	c := w.Dial("a")
	c.Send(world.JSON(map[string]any{"op": "send", "id": "m", "workspace": w.Workspace, "input": "sleep"}))
	run := world.Last(c.Until("start")).Str("run")
	c.Until("delta")
	sockets, err := filepath.Glob(filepath.Join(w.Layout.Capabilities("a"), "*.sock"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("sockets: %v, %v", sockets, err)
	}
	try := func(when string) {
		for _, socket := range sockets {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				continue // nobody is there
			}
			conn.SetDeadline(time.Now().Add(world.Patience))
			fmt.Fprintln(conn, strings.ReplaceAll(update("o", "a", "system.md", "from outside\n"), "RUN", run))
			reply := make([]byte, 1024)
			n, _ := conn.Read(reply)
			conn.Close()
			if !strings.Contains(string(reply[:n]), `"EACCES"`) {
				t.Errorf("%s: %s answers %q", when, socket, reply[:n])
			}
		}
	}
	for _, socket := range sockets {
		if st, err := os.Lstat(socket); err != nil || st.Mode() != os.ModeSocket|0o600 {
			t.Errorf("%s: %v, %v", socket, st.Mode(), err)
		}
	}
	try("during the run")
	c.Ask(world.JSON(map[string]any{"op": "cancel", "id": run}), "done")
	try("after the run")
	if got := w.Read(w.Root + "/agent/a.d/system.md"); got != "as it was\n" {
		t.Errorf("the prompt is %q", got)
	}
}

// TestCapabilityOfTools: a tool of a run may do what the agent may, if there is no
// more to it than policy; an orphan in its sandbox too. Where a person has to allow
// it, only the call may that was allowed.
func TestCapabilityOfTools(t *testing.T) {
	w := world.New(t)
	w.Puppet("a", "agent.update", "bash")
	w.MustCtx("agent", "set", "a", "system.md", "as it was\n")
	w.Ctx("agent", "tsh", "a", "--", "help")
	c := w.Dial("a")
	prompt := func() string { return w.Read(w.Root + "/agent/a.d/system.md") }
	id := 0
	call := func(words ...string) []world.Frame {
		id++
		return c.Ask(tsh(fmt.Sprint("t", id), "default", w.Workspace, words...), "done")
	}
	mustMatch(t, call("bash", "-c", "echo $CTX_CONTROL_SOCKET; /ctx/bin/ctxtool agent.update system.md tool"),
		"ok: /run/cortexfs/control.sock\nsystem.md has 4 bytes now.*")
	mustMatch(t, call("bash", "-c", "cd /run/cortexfs; chmod 0 control.sock || rm control.sock || mv control.sock x || touch control.sock"), "error: .*")
	if got := prompt(); got != "tool" {
		t.Errorf("the prompt is %q", got)
	}
	mustMatch(t, call("bash", "-c", `mkfifo /tmp/f; (setsid sh -c 'exec >/tmp/out 2>&1; /ctx/bin/ctxtool agent.update system.md orphan; echo $? >/tmp/f' &); cat /tmp/f /tmp/out`),
		"ok: 0\nsystem.md has 6 bytes now.*")
	mustMatch(t, call("agent.update", "policy", "x"), `error: .*policy.*can not be changed from inside a run.*`)

	w.MustCtx("agent", "set", "a", "approval", "ask")
	f := allow(c, asked(w, c, "ask-1", "bash", "-c", "/ctx/bin/ctxtool agent.update system.md sneaked"))
	mustMatch(t, f, "error: .*not permitted.*")
	if got := prompt(); got != "orphan" {
		t.Errorf("the prompt is %q", got)
	}
	q := asked(w, c, "ask-2", "agent.update", "system.md", "allowed")
	if q.Str("name") != "agent.update" || q.Str("effect") != "host_mutation" || world.JSON(q["arguments"]) != `{"args":["system.md","allowed"]}` {
		t.Errorf("asked: %v", q)
	}
	mustMatch(t, allow(c, q), "ok: system.md has 7 bytes now.*")
	if got := prompt(); got != "allowed" {
		t.Errorf("the prompt is %q", got)
	}
}
