package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// hook makes a hook that is a shell script, at a place like "agent/a.d pre.d 10".
func hook(w *world.World, at, text string) string {
	w.T.Helper()
	f := strings.Fields(at)
	dir := w.Root
	for _, sub := range []string{f[0], "hooks", f[1]} {
		dir = filepath.Join(dir, sub)
		if _, err := os.Stat(dir); err != nil {
			w.Mkdir(dir, 0o755)
		}
	}
	path := filepath.Join(dir, f[2])
	w.Write(path, "#!/bin/sh\n"+text+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		w.T.Fatal(err)
	}
	return path
}

func unhook(w *world.World, dirs ...string) {
	w.T.Helper()
	for _, dir := range dirs {
		if err := os.RemoveAll(filepath.Join(w.Root, dir, "hooks")); err != nil {
			w.T.Fatal(err)
		}
	}
}

// TestHooks: for an executable agent and for a tool operation, hooks before a call
// refuse it, those after it hear of what was begun and of nothing else.
func TestHooks(t *testing.T) {
	w := ready(t, "shell.exec")
	for op, request := range map[string]func(id, name string) string{
		"send": func(id, name string) string { return send(id, id, w.Workspace, mark(name)) },
		"tsh":  func(id, name string) string { return tsh(id, id, w.Workspace, "shell.exec", "echo made > "+name) },
	} {
		c := w.Dial("a")
		hook(w, "agent/a.d pre.d 10", "grep -q '\"hook\":\"pre\".*\"tool\":\"shell.exec\".*made' || { echo blind; exit 1; }")
		hook(w, "tool/shell.exec.d post.d 10", "cat >>/workspace/heard-"+op)
		frames := c.Ask(request(op+"-1", op+"-yes"), "done")
		if !made(w, op+"-yes") || len(only(frames, "hook_failed")) != 0 {
			t.Errorf("%s: %s", op, world.JSON(frames))
		}
		heard := w.Read(w.Workspace + "/heard-" + op)
		if !strings.Contains(heard, `"hook":"post"`) || !strings.Contains(heard, `"status":"ok"`) || strings.Count(heard, "\n") != 1 {
			t.Errorf("%s: the hook after it heard %q", op, heard)
		}

		hook(w, "tool/shell.exec.d pre.d 10", "echo 'not today'; exit 3")
		frames = c.Ask(request(op+"-2", op+"-no"), "done")
		p := world.Last(only(frames, "tool_policy"))
		if made(w, op+"-no") || p.Str("code") != "secondary_hook_denied" || p["allowed"] != false ||
			p.Str("reason") != "/ctx/tool/shell.exec.d/hooks/pre.d/10: exit code 3: not today" {
			t.Errorf("%s: %s", op, world.JSON(frames))
		}
		if r := only(frames, "tool_result"); len(r) != 1 || r[0].Str("content") != "not permitted" || r[0].Str("status") != "error" {
			t.Errorf("%s: %s", op, world.JSON(frames))
		}
		if w.Read(w.Workspace+"/heard-"+op) != heard {
			t.Errorf("%s: a hook heard of a refused call", op)
		}

		unhook(w, "agent/a.d", "tool/shell.exec.d")
		hook(w, "agent/a.d post.d 10", "echo broken; exit 1")
		frames = c.Ask(request(op+"-3", op+"-still"), "done")
		failed := only(frames, "hook_failed")
		if !made(w, op+"-still") || len(failed) != 1 || failed[0].Str("hook") != "agent/a.d/hooks/post.d/10" ||
			failed[0].Str("reason") != "exit code 1: broken" || failed[0].Str("call") == "" || world.Last(frames).Str("status") != "ok" {
			t.Errorf("%s: %s", op, world.JSON(frames))
		}
		if r := only(frames, "tool_result"); len(r) != 1 || r[0].Str("status") != "ok" {
			t.Errorf("%s: %s", op, world.JSON(frames))
		}
		// Who looks later sees it too.
		if again := only(remembered(w, op+"-3"), "hook_failed"); len(again) != 1 || world.JSON(again[0]) != world.JSON(failed[0]) {
			t.Errorf("%s: later %s", op, world.JSON(again))
		}
		unhook(w, "agent/a.d")
	}
}

// TestHooksAllowNothing: what anything else is against is refused, and no hook is
// asked.
func TestHooksAllowNothing(t *testing.T) {
	w := ready(t, "fs.read", "fs.write")
	hook(w, "agent/a.d pre.d 10", "exit 0")
	hook(w, "agent/a.d post.d 10", "echo >/workspace/heard")
	c := w.Dial("a")
	for code, tool := range map[string]string{"perm": "shell.exec", "agent_policy": "fs.replace", "tool_not_found": "nosuch"} {
		frames := c.Ask(tsh("t-"+code, "default", w.Workspace, tool, "echo made > x"), "done")
		if p := world.Last(only(frames, "tool_policy")); p.Str("code") != code || made(w, "x") || made(w, "heard") {
			t.Errorf("%s: %s", code, world.JSON(frames))
		}
	}
	w.MustCtx("agent", "set", "a", "approval", "ask")
	frames := c.Ask(tsh("t-ask", "default", w.Workspace, "fs.read", "README.md"), "approval_request")
	frames = c.Ask(answer(world.Last(frames), "deny"), "done")
	if p := world.Last(only(frames, "tool_policy")); p.Str("code") != "approval_denied" || made(w, "heard") {
		t.Errorf("%s", world.JSON(frames))
	}
}

// TestHookCancelled: a run that is cancelled while a hook looks ends, and nothing was
// decided about the call, which is not begun.
func TestHookCancelled(t *testing.T) {
	w := ready(t, "shell.exec")
	fifo := w.Workspace + "/looks"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(fifo, w.UID, w.UID); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	hook(w, "agent/a.d pre.d 10", "trap '' TERM; echo >/workspace/looks; while :; do sleep 1000000; done")
	for id, request := range map[string]string{
		"m": send("m", "m", w.Workspace, mark("made-it")), "t": tsh("t", "t", w.Workspace, "shell.exec", "echo made > made-it"),
	} {
		c := w.Dial("a")
		c.Send(request)
		pipe.SetReadDeadline(time.Now().Add(world.Patience))
		if _, err := pipe.Read(make([]byte, 1)); err != nil { // once the hook looks
			t.Fatal(err)
		}
		frames := c.Ask(`{"op":"cancel","id":"`+id+`"}`, "done")
		if world.Last(frames).Str("status") != "cancelled" || made(w, "made-it") || len(only(frames, "tool_policy")) > 0 {
			t.Errorf("%s", world.JSON(frames))
		}
	}
}

// TestHooksAreHidden: a call finds no hooks, and can make none.
func TestHooksAreHidden(t *testing.T) {
	w := ready(t, "shell.exec")
	hook(w, "agent/a.d post.d 10", "exit 0")
	hook(w, "tool/shell.exec.d post.d 10", "exit 0")
	look := "find / -xdev -name '*post.d*' 2>/dev/null; find /ctx -name '*hooks*' -exec ls -A {} +; for d in /ctx/agent/a.d /ctx/tool/shell.exec.d; do mkdir -p $d/hooks/pre.d || echo refused; done 2>/dev/null"
	r := w.Ctx("agent", "tsh", "a", "--", "shell.exec", look)
	if r.Code != 0 || !strings.HasPrefix(r.Out, "refused\nrefused\n") || strings.Contains(r.Out, "hooks") {
		t.Errorf("%d, %q, %s", r.Code, r.Out, r.Err)
	}
}
