package adversary

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// update is a request to change an agent's own prompt. Its parts are shell words,
// to be put into double quotes.
func update(id, agent, session, run, control string) string {
	return strings.ReplaceAll(world.JSON(map[string]any{
		"op": "agent.update", "request_id": id, "agent": agent, "session": session, "run": run, "control": control, "content": "changed by " + id,
	}), `"`, `\"`)
}

// ask is a command line that sends requests over a capability socket, each over a
// connection of its own.
func ask(socket string, requests ...string) string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, hostile.Intruder+` say "`+socket+`" "`+r+`"`)
	}
	return strings.Join(lines, "\n")
}

// updated are the requests that were carried out, by their ids.
func updated(out string) (done []string) {
	for line := range strings.Lines(out) {
		if strings.Contains(line, `"agent.updated"`) {
			done = append(done, strings.TrimSpace(line))
		}
	}
	return done
}

const ownSocket = "$CTX_CONTROL_SOCKET"

// TestControlSocketIdentity: from inside a run, for another agent, session, run or
// control.
func TestControlSocketIdentity(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		look := changed(w, w.Root+"/agent")
		line := ask(ownSocket,
			update("$CTX_RUN_ID-1", "b", "s", "$CTX_RUN_ID", "system.md"),
			update("$CTX_RUN_ID-2", "a", "other", "$CTX_RUN_ID", "system.md"),
			update("$CTX_RUN_ID-3", "a", "s", "01KB9QZ3M8T5V2N7X4C6D1E0FG", "system.md"),
		)
		out := hostile.Inside(w, line)
		if n := strings.Count(out, `"EINVAL"`); n != 6 && len(updated(out)) == 0 {
			t.Errorf("%d refusals: %s", n, out)
		}
		return append(updated(out), look()...)
	}, "capsock:identity")
}

// TestControlSocketControls: from inside a run, for controls that grant something.
func TestControlSocketControls(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		look := changed(w, w.Root+"/agent")
		var requests []string
		for _, control := range []string{
			"policy", "perm", "approval", "effects", "tools", "hooks/pre.d/x", "../b.d/system.md", "./system.md", "system.md/", "/ctx/agent/a.d/system.md", "SYSTEM.md", "",
		} {
			requests = append(requests, update("$CTX_RUN_ID-"+hostile.ID(), "a", "s", "$CTX_RUN_ID", control))
		}
		out := hostile.Inside(w, ask(ownSocket, requests...))
		if n := strings.Count(out, `"EINVAL"`); n != 2*len(requests) && len(updated(out)) == 0 {
			t.Errorf("%d refusals: %s", n, out)
		}
		return append(updated(out), look()...)
	})
}

// TestControlSocketReplay: a request a second time.
func TestControlSocketReplay(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) []string {
		again := update("once", "a", "s", "$CTX_RUN_ID", "system.md")
		out := hostile.ByAgent(w, ask(ownSocket, again, again, again))
		done := updated(out)
		if len(done) == 0 {
			t.Fatalf("not even once: %s", out)
		}
		return done[1:]
	}, "capsock:replay")
}

// TestControlSocketFromOutside: by the agent's own user, whose process is in no
// sandbox of the run: during the run, and after it.
func TestControlSocketFromOutside(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		fifo := hostile.NewFIFO(w, "up")
		c := w.Dial("a")
		c.Send(hostile.Send(w, "cat "+fifo.Inside))
		run := world.Last(c.Until("start")).Str("run")
		up := fifo.Await()
		try := func(when string) {
			request := strings.ReplaceAll(update("outside", "a", "s", run, "system.md"), `\"`, `"`)
			for _, path := range sockets(w) {
				r := w.Run(w.Command("intruder", "say", path, request))
				if strings.Contains(r.Out, "agent.updated") {
					done = append(done, when)
				} else if !strings.Contains(r.Out, `"EACCES"`) && !strings.Contains(r.Out, "ENOENT") && !strings.Contains(r.Out, "ECONNREFUSED") {
					t.Errorf("%s: %+v", when, r)
				}
			}
		}
		if len(sockets(w)) == 0 {
			t.Fatal("there is no socket")
		}
		try("during the run")
		up.Close()
		c.Until("done")
		try("after the run")
		return done
	}, "capsock:descendant")
}

// sockets are the capability sockets of agent a.
func sockets(w *world.World) []string {
	w.T.Helper()
	all, err := filepath.Glob(filepath.Join(w.Layout.Capabilities("a"), "*.sock"))
	if err != nil {
		w.T.Fatal(err)
	}
	return all
}

// TestControlSocketOfASibling: another agent of the user, from inside its own
// sandbox, while a run of the first goes on.
func TestControlSocketOfASibling(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		fifo := hostile.NewFIFO(w, "up")
		c := w.Dial("a")
		c.Send(hostile.Send(w, "cat "+fifo.Inside))
		run := world.Last(c.Until("start")).Str("run")
		up := fifo.Await()
		defer up.Close()
		requests := ask(ownSocket, update("sibling", "a", "s", run, "system.md"))
		for _, path := range append(sockets(w), "/run/cortexfs/control.sock.a", "/workspace/../run/cortexfs/a.sock") {
			requests += "\n" + ask(path, update("sibling", "a", "s", run, "system.md"))
		}
		f := w.Dial("b").Ask(hostile.Tsh(w, "shell.exec", requests), "done")
		out := hostile.Result(f).Str("content")
		if !strings.Contains(out, `"EINVAL"`) && len(updated(out)) == 0 {
			t.Errorf("%s", out)
		}
		return updated(out)
	}, "capsock:identity")
}

// TestControlSocketPassedOut: a connection that is made inside is passed to a
// process outside, which speaks over it.
func TestControlSocketPassedOut(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		path := w.Workspace + "/out.sock"
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		hostile.Give(w, path)
		fifo := hostile.NewFIFO(w, "up")
		c := w.Dial("a")
		c.Send(hostile.Send(w, hostile.Intruder+` pass "$CTX_CONTROL_SOCKET" /workspace/out.sock; cat `+fifo.Inside))
		run := world.Last(c.Until("start")).Str("run")
		l.SetDeadline(time.Now().Add(world.Patience))
		out, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		got := hostile.Taken(t, out)
		defer fifo.Await().Close() // who connected is gone now, its sandbox is not
		defer got.Close()
		got.SetDeadline(time.Now().Add(world.Patience))
		got.Write([]byte(strings.ReplaceAll(update("passed", "a", "s", run, "system.md"), `\"`, `"`) + "\n"))
		answer := make([]byte, 4096)
		n, _ := got.Read(answer)
		return updated(string(answer[:n]))
	}, "capsock:descendant")
}

// TestHooks: a call that a hook refuses, by every way to it, by an agent that does
// what it can about the hook.
func TestHooks(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.User, func(t *testing.T, w *world.World) (done []string) {
		dir := w.Root + "/agent/a.d/hooks/pre.d"
		hostile.Inside(w, `echo 'exit 0' >~/.profile; cp ~/.profile ~/.bashrc; printf '#!/bin/sh\nexit 0\n' >grep; chmod 755 grep; cp grep ~/grep`+
			"\nmkdir -p /ctx/agent/a.d/hooks/pre.d; ln -s /bin/true /ctx/agent/a.d/hooks/pre.d/00-yes")
		w.Mkdir(filepath.Dir(dir), 0o755)
		w.Mkdir(dir, 0o755)
		hostile.Script(w, dir+"/10-no", "#!/bin/sh\nexec grep -q harmless\n")
		for _, request := range []string{
			hostile.Tsh(w, "shell.exec", "touch made"), hostile.Tsh(w, "fs.write", "made", "x"), hostile.Tsh(w, "intruder", "fill", "/workspace/made", "1"),
			hostile.Send(w, `frame {"type":"tool_call","run":"RUN","id":"c1","name":"shell.exec","arguments":{"cmd":"touch made"}}`),
		} {
			f := w.Dial("a").Ask(request, "done")
			if exists(w.Workspace + "/made") {
				done = append(done, request)
			} else if !strings.Contains(world.JSON(f), "secondary_hook_denied") {
				t.Errorf("%s: %s", request, world.JSON(f))
			}
		}
		if out := result(w, "shell.exec", "echo harmless"); !strings.Contains(out, "harmless") && len(done) == 0 {
			t.Errorf("what the hook lets pass: %q", out)
		}
		return done
	}, "calls:hooks")
}
