package e2e

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// asked begins a tool operation that a person has to allow, and returns when the
// question is there.
func asked(w *world.World, c *world.Conn, id string, args ...string) world.Frame {
	c.Send(tsh(id, "default", w.Workspace, args...))
	return world.Last(c.Until("approval_request"))
}

func allow(c *world.Conn, q world.Frame) []world.Frame {
	return c.Ask(world.JSON(map[string]any{"op": "approve", "run": q.Str("run"), "id": q.Str("call"), "decision": "allow_once"}), "done")
}

// TestAllowedIsNotForEver: what a person allowed must still be what the files allow
// when it starts. What starts is the file that was looked at.
func TestAllowedIsNotForEver(t *testing.T) {
	w := world.New(t)
	own := w.Root + "/tool/own"
	write := func(says string) {
		w.Write(own+".new", "#!/bin/sh\necho "+says+"\n")
		if err := os.Chmod(own+".new", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(own+".new", own); err != nil { // another file, as an installer does it
			t.Fatal(err)
		}
	}
	write("first")
	w.Mkdir(own+".d", 0o755)
	w.Write(own+".d/effect", "pure\n")
	w.Puppet("a", "own", "fs.read")
	policy := w.Root + "/agent/a.d/policy"
	kept := w.Read(policy)
	w.MustCtx("agent", "set", "a", "approval", "ask")
	w.Ctx("agent", "tsh", "a", "--", "fs.read", "README.md") // starts what has to run
	c := w.Dial("a")
	for name, tt := range map[string]struct {
		meanwhile func()
		code      string
		says      string
	}{
		"nothing happens":     {func() {}, "", "first\n"},
		"no line any more":    {func() { w.Write(policy, strings.ReplaceAll(kept, "allow a_t tool:own execute\n", "")) }, "effect_reservation_commit_denied", "not permitted"},
		"another effect":      {func() { w.Write(own+".d/effect", "network\n") }, "effect_reservation_commit_denied", "not permitted"},
		"no such tool":        {func() { os.Remove(own) }, "effect_reservation_commit_denied", "not permitted"},
		"the agent is broken": {func() { w.Write(policy, "# mine\n") }, "effect_reservation_commit_denied", "not permitted"},
		"another file":        {func() { write("second") }, "", "first\n"},
		"nobody asks now":     {func() { w.Write(w.Root+"/agent/a.d/approval", "auto\n") }, "", "first\n"},
	} {
		q := asked(w, c, "q-"+strings.ReplaceAll(name, " ", "-"), "own")
		tt.meanwhile()
		f := allow(c, q)
		if got := world.Kinds(f); got != "approval_result tool_policy tool_result done" {
			t.Fatalf("%s: %s", name, got)
		}
		p, r := f[1], f[2]
		if p["allowed"] != (tt.code == "") || p.Str("code") != tt.code || r.Str("content") != tt.says {
			t.Errorf("%s: %v %v", name, p, r)
		}
		if tt.code == "" && p.Str("authorization") != "approval" || tt.code != "" && p.Str("reason") == "" {
			t.Errorf("%s: %v", name, p)
		}
		w.Write(policy, kept)
		w.Write(own+".d/effect", "pure\n")
		w.Write(w.Root+"/agent/a.d/approval", "ask\n")
		write("first")
	}

	// A run that is cancelled while a person thinks starts nothing, and its answer
	// comes too late.
	q := asked(w, c, "late", "own")
	c.Send(world.JSON(map[string]any{"op": "cancel", "id": q.Str("run")}))
	f := c.Until("done")
	for _, x := range f {
		if x.Type() == "tool_policy" && x["allowed"] == true || strings.Contains(x.Str("content"), "first") {
			t.Errorf("after the end: %v", x)
		}
	}
	if world.Last(f).Str("status") != "cancelled" {
		t.Errorf("%s", world.JSON(f))
	}
}

// TestPolicyInForce: a decision tells what it was made by, and where that is from.
func TestPolicyInForce(t *testing.T) {
	w := world.New(t)
	w.Puppet("a", "fs.read", "fs.write")
	w.MustCtx("agent", "set", "a", "effects", "controlled")
	w.MustCtx("agent", "set", "a", "timeout", "7s")
	w.MustCtx("agent", "tsh", "a", "--", "fs.read", "README.md")
	c := w.Dial("a")
	for _, args := range [][]string{{"fs.read", "README.md"}, {"fs.read", "/etc/passwd"}, {"tools"}} {
		f := c.Ask(tsh("id-"+strings.Trim(strings.ReplaceAll(args[len(args)-1], "/", "."), "."), "default", w.Workspace, args...), "done")
		p, _ := f[2]["policy"].(map[string]any)
		for name, want := range map[string]string{
			"effect_policy":         `{"source":"config","value":"controlled"}`,
			"approval":              `{"source":"default","value":"auto"}`,
			"perm":                  `{"source":"config","value":"rw-"}`,
			"workspace_confinement": `{"source":"config","value":true}`,
			"allow_edit":            `{"source":"config","value":false}`,
			"allow_write":           `{"source":"config","value":true}`,
			"allow_process":         `{"source":"config","value":false}`,
			"allow_shell":           `{"source":"config","value":false}`,
			"bash_timeout_ms":       `{"source":"config","value":7000}`,
			"max_output_bytes":      `{"source":"default","value":51200}`,
			"allow_remote_read":     `{"source":"config","value":false}`,
		} {
			if got := world.JSON(p[name]); got != want {
				t.Errorf("%v: %s is %s, want %s", args, name, got, want)
			}
		}
		if got := world.JSON(p["shell_path"]); !strings.Contains(got, `"selection"`) || strings.Contains(got, "/") {
			t.Errorf("%v: shell_path is %s", args, got)
		}
		if len(p) != 12 {
			t.Errorf("%v: %v", args, p)
		}
	}
}
