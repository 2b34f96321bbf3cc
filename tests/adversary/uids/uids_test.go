// Package uids attacks as another user of the machine, root's agents and those
// of an ordinary user. It needs root, so `make test` includes it only there.
package uids

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { world.Main(m) }

// intrude runs the intruder as a user and returns what it prints.
func intrude(w *world.World, uid int, words ...string) string {
	w.T.Helper()
	u := hostile.As(w, uid)
	cmd := u.Command("intruder", words...)
	cmd.Dir = "/"
	r := u.Run(cmd)
	if r.Code != 0 {
		w.T.Errorf("intruder %v: %+v", words, r)
	}
	return r.Out
}

// loosen lets everybody connect to a socket, as far as its file goes.
func loosen(t *testing.T, w *world.World, socket string) {
	t.Helper()
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(socket); dir != "/" && dir != "/run"; dir = filepath.Dir(dir) {
		st, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, st.Mode().Perm()|0o011); err != nil {
			t.Fatal(err)
		}
	}
}

// owned is a request of alice's agent.
func owned(w *world.World, op string, members map[string]any) string {
	all := map[string]any{"op": op, "id": hostile.ID(), "session": "s", "workspace": hostile.As(w, hostile.Alice).Workspace}
	for k, v := range members {
		all[k] = v
	}
	return world.JSON(all)
}

// call is a call of a tool of alice's agent and what it came to.
func call(w *world.World, args ...string) []world.Frame {
	w.T.Helper()
	c := w.Dial("a")
	f := c.Ask(owned(w, "tsh", map[string]any{"args": args}), "")
	if f[0].Type() == "error" {
		return f
	}
	return append(f, c.Until("done")...)
}

// TestStrangersSocket: another user at an agent's socket that the file system
// lets them connect to.
func TestStrangersSocket(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		call(w, "shell.exec", "echo the secret of alice")
		socket := w.Layout.Socket("a")
		loosen(t, w, socket)
		for _, line := range []string{
			`{"op":"ping"}`, `{"op":"status"}`, `{"op":"resume","session":"s"}`, owned(w, "send", map[string]any{"input": "true"}),
			owned(w, "tsh", map[string]any{"args": []string{"shell.exec", "true"}}), `{"op":"stop","agent":"a"}`,
		} {
			out := intrude(w, hostile.Bob, "say", socket, line)
			if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"EACCES"`) {
				done = append(done, line+": "+out)
			}
		}
		return done
	}, "server:peer")
}

// TestAdminSocket: another user asks for changes of agents that are not theirs.
func TestAdminSocket(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		socket := paths.AdminSocket(w.Root)
		cmd := w.Command("ctxd", "admin")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Signal(unix.SIGTERM)
		w.AwaitExists(socket)
		for _, line := range []string{
			`{"op":"agent.set","agent":"a","control":"approval","content":"auto\n"}`, `{"op":"agent.enable","agent":"a"}`,
			`{"op":"agent.new","agent":"c","model":"debug/echo","owner":` + strconv.Itoa(hostile.Alice) + `}`,
			`{"op":"agent.new","agent":"d","model":"debug/echo","owner":0}`, `{"op":"agent.rm","agent":"a","purge":true}`,
		} {
			if out := intrude(w, hostile.Bob, "say", socket, line); !strings.Contains(out, `"EACCES"`) {
				done = append(done, line+": "+out)
			}
		}
		return done
	}, "admin:peer")
}

// TestStrangersCrowd: another user holds as many connections as they can.
func TestStrangersCrowd(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		call(w, "tools")
		socket := w.Layout.Socket("a")
		loosen(t, w, socket)
		u := hostile.As(w, hostile.Bob)
		cmd := u.Command("intruder", "crowd", socket, "2000")
		cmd.Dir = "/"
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer hold.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			out := intrude(w, hostile.Alice, "say", socket, owned(w, "tsh", map[string]any{"args": []string{"tools"}}))
			if !strings.Contains(out, `"status":"ok"`) {
				done = append(done, "keep alice away: "+out)
			}
		}
		return done
	})
}

// TestOthersFiles: another user reads and writes what a user's agents keep.
func TestOthersFiles(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		call(w, "shell.exec", "echo the secret of alice; echo x >~/data/file")
		home := filepath.Join(w.Root, "home", strconv.Itoa(hostile.Alice))
		var all []string
		for _, dir := range []string{home, w.Layout.Locks, w.Layout.Views, filepath.Dir(w.Layout.Socket("a"))} {
			filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && path != filepath.Dir(w.Layout.Socket("a")) && filepath.Base(path) != "b.sock" && path != w.Layout.Views {
					all = append(all, path)
				}
				return nil
			})
		}
		if len(all) < 20 {
			t.Errorf("there is only %v", all)
		}
		done = hostile.Did(hostile.Tried(t, intrude(w, hostile.Bob, append([]string{"open"}, all...)...), len(all)))
		var controls []string
		for _, name := range []string{"policy", "perm", "approval", "effects", "owner", "protect", "hooks"} {
			controls = append(controls, w.Root+"/agent/a.d/"+name)
		}
		controls = append(controls, w.Root+"/tool/fs.read", w.Root+"/agent/a", w.Root+"/agent", w.Root+"/tool", w.Root, home, w.Layout.Runtime)
		done = append(done, hostile.Did(hostile.Tried(t, intrude(w, hostile.Bob, append([]string{"write"}, controls...)...), 100))...)
		u := hostile.As(w, hostile.Bob)
		for _, args := range [][]string{{"agent", "history", "a"}, {"agent", "output", "a"}, {"agent", "send", "a", "true"}, {"agent", "set", "a", "approval", "auto"}, {"agent", "rm", "a"}} {
			if r := u.Ctx(args...); r.Code == 0 {
				done = append(done, strings.Join(args, " "))
			}
		}
		// By way of an agent of their own.
		for _, dir := range []string{home, home + "/agent/a/session/s", hostile.As(w, hostile.Alice).Workspace} {
			f := w.Dial("b").Ask(world.JSON(map[string]any{"op": "tsh", "id": hostile.ID(), "workspace": dir, "args": []string{"shell.exec", "ls"}}), "")
			if f[0].Type() != "error" {
				done = append(done, "work in "+dir)
			}
		}
		return done
	})
}

// TestOthersProcesses: another user looks into and changes the processes of ctxd
// and of a sandbox.
func TestOthersProcesses(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		fifo := hostile.NewFIFO(hostile.As(w, hostile.Alice), "up")
		c := w.Dial("a")
		c.Send(owned(w, "tsh", map[string]any{"args": []string{"shell.exec", "cat " + fifo.Inside}}))
		up := fifo.Await()
		tries := 0
		for _, pid := range w.Processes() {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			for _, secret := range []string{"hunter2", "the secret"} {
				if strings.Contains(string(line), secret) {
					done = append(done, "see "+secret)
				}
			}
			out := intrude(w, hostile.Bob, "process", strconv.Itoa(pid))
			tries += strings.Count(out, "no ")
			done = append(done, hostile.Did(out)...)
		}
		if tries < 50 {
			t.Errorf("%d tries", tries)
		}
		up.Close()
		if f := c.Until("done"); world.Last(f).Str("status") != "ok" {
			done = append(done, "end a call")
		}
		return done
	})
}

// TestForeignControls: controls that another user could have written.
func TestForeignControls(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		policy := w.Root + "/agent/a.d/policy"
		kept := w.Read(policy)
		for name, loose := range map[string]func() error{
			"is bob's":               func() error { return os.Chown(policy, hostile.Bob, hostile.Bob) },
			"everybody can write":    func() error { return os.Chmod(policy, 0o666) },
			"is in a directory such": func() error { return os.Chmod(filepath.Dir(policy), 0o777) },
		} {
			if err := loose(); err != nil {
				t.Fatal(err)
			}
			out := intrude(w, hostile.Bob, "grant", policy, "allow a_t tool:fs.write execute")
			if len(hostile.Did(out)) == 0 {
				t.Errorf("%s: %s", name, out)
			}
			if f := call(w, "fs.read", "none"); f[0].Type() != "error" {
				done = append(done, "be believed where it "+name)
			}
			os.Remove(policy)
			w.Write(policy, kept)
			os.Chmod(filepath.Dir(policy), 0o755)
		}
		return done
	}, "trust:files")
}

// TestForeignTool: a tool, or a hook, that another user could have written.
func TestForeignTool(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		made := hostile.As(w, hostile.Alice).Workspace + "/made"
		tool := filepath.Join(w.Root, "tool", "shell.exec")
		for name, path := range map[string]string{"bob's": tool, "everybody can write": tool} {
			hostile.Script(w, path, "#!/bin/sh\ntouch /workspace/made\n")
			if name == "bob's" {
				os.Chown(path, hostile.Bob, hostile.Bob)
			} else {
				os.Chown(path, 0, 0)
				os.Chmod(path, 0o777)
			}
			call(w, "shell.exec", "true")
			if _, err := os.Stat(made); err == nil {
				done = append(done, "run a tool that is "+name)
				os.Remove(made)
			}
		}
		return done
	}, "trust:files")
}

// TestSetUserID: programs with the bits of other users, in the workspace.
func TestSetUserID(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		u := hostile.As(w, hostile.Alice)
		text, err := os.ReadFile("/usr/bin/id")
		if err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]uint32{"setuid": 0o4755, "setgid": 0o2755, "both": 0o6755} {
			path := u.Workspace + "/" + name
			if err := os.WriteFile(path, text, 0o755); err != nil { // root's
				t.Fatal(err)
			}
			if err := unix.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		want := strings.Repeat(fmt.Sprintf("%d\n%d\n", hostile.Alice, hostile.Alice), 3)
		f := call(w, "shell.exec", "for p in setuid setgid both; do ./$p -u; ./$p -g; done")
		if got := hostile.Result(f).Str("content"); !strings.HasPrefix(got, want) {
			done = append(done, "be "+got)
		}
		return done
	})
}

// TestPlantedRuntimeDirectory: another user is there first with the directory
// that a user without one of their own makes for sockets.
func TestPlantedRuntimeDirectory(t *testing.T) {
	t.Parallel()
	var uids atomic.Int64 // of nobody else's tests: the place has its name of them
	uids.Store(60900)
	hostile.Refused(t, func(t testing.TB, off ...string) *world.World {
		w := world.NewAs(t, int(uids.Add(1)))
		hostile.Without(t, w, off...)
		return w
	}, func(t *testing.T, w *world.World) (done []string) {
		place := fmt.Sprintf("/tmp/cortexfs-%d", w.UID)
		t.Cleanup(func() { os.RemoveAll(place) })
		w.MustCtx("agent", "new", "a", "--exec", filepath.Join(w.Bin, "puppet"))
		for name, plant := range map[string]func() error{
			"a directory": func() error {
				return first(os.Mkdir(place, 0o777), os.Chmod(place, 0o777), os.Chown(place, hostile.Bob, hostile.Bob))
			},
			"a link": func() error { return first(os.Symlink(w.Dir+"/elsewhere", place), os.Mkdir(w.Dir+"/elsewhere", 0o777)) },
		} {
			if err := plant(); err != nil {
				t.Fatal(err)
			}
			cmd := w.Command("ctxd", "agent", "a", "--idle", "1ms")
			cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR=")
			if r := w.Run(cmd); r.Code == 0 {
				done = append(done, "have it use "+name)
			} else if !strings.Contains(r.Err, "runtime directory") {
				t.Errorf("%s: %+v", name, r)
			}
			os.RemoveAll(place)
		}
		return done
	}, "rundir:owner")
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestControlSocketOfAnother: another user at the capability socket of a run, whose
// place they know and which the file system lets them connect to.
func TestControlSocketOfAnother(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		sockets, run, end := during(t, w)
		defer end()
		for _, path := range sockets {
			loosen(t, w, path)
			for _, uid := range []int{hostile.Bob, 0} {
				if out := intrude(w, uid, "say", path, update(run)); strings.Contains(out, "agent.updated") {
					done = append(done, fmt.Sprint("as ", uid, ": ", out))
				} else if !strings.Contains(out, `"EACCES"`) {
					t.Error(out)
				}
			}
		}
		return done
	}, "capsock:owner+capsock:descendant")
}

// during begins a run of alice's agent that goes on until end.
func during(t *testing.T, w *world.World) (sockets []string, run string, end func() []world.Frame) {
	t.Helper()
	fifo := hostile.NewFIFO(hostile.As(w, hostile.Alice), "up")
	c := w.Dial("a")
	c.Send(owned(w, "send", map[string]any{"input": "cat " + fifo.Inside}))
	run = world.Last(c.Until("start")).Str("run")
	up := fifo.Await()
	sockets, err := filepath.Glob(filepath.Join(w.Layout.Capabilities("a"), "*.sock"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("%v, %v", sockets, err)
	}
	return sockets, run, func() []world.Frame {
		up.Close()
		return c.Until("done")
	}
}

func update(run string) string {
	return world.JSON(map[string]any{
		"op": "agent.update", "request_id": hostile.ID(), "agent": "a", "session": "s", "run": run, "control": "system.md", "content": "owned",
	})
}

// TestControlSocketPIDReuse: a process of the agent's own user that is outside
// gets the number of the first process of a sandbox of the run, which has ended.
func TestControlSocketPIDReuse(t *testing.T) {
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		// A run whose first call is over, and which goes on.
		alice := hostile.As(w, hostile.Alice)
		first, second := hostile.NewFIFO(alice, "first"), hostile.NewFIFO(alice, "second")
		c := w.Dial("a")
		c.Send(owned(w, "send", map[string]any{"input": `frame {"type":"tool_call","run":"RUN","id":"c1","name":"shell.exec","arguments":{"cmd":"cat ` +
			first.Inside + `"}}` + "\n--\ncat " + second.Inside}))
		run := world.Last(c.Until("start")).Str("run")
		up := first.Await()
		root := firstProcess(t, w)
		up.Close()
		c.Until("tool_result")
		up = second.Await()
		sockets, err := filepath.Glob(filepath.Join(w.Layout.Capabilities("a"), "*.sock"))
		if err != nil || len(sockets) == 0 {
			t.Fatal(sockets, err)
		}
		for _, path := range sockets {
			if out := asProcess(t, alice, root, "say", path, update(run)); strings.Contains(out, "agent.updated") {
				done = append(done, out)
			} else if !strings.Contains(out, `"EACCES"`) {
				t.Error(out)
			}
		}
		up.Close()
		c.Until("done")
		return done
	}, "capsock:descendant")
}

// asProcess runs the intruder in a process that has a number which was another's,
// and returns what it prints.
func asProcess(t *testing.T, w *world.World, pid int, words ...string) string {
	t.Helper()
	for began := time.Now(); time.Since(began) < world.Patience; {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.Command("intruder", words...)
		cmd.Args = append([]string{"sh", "-c", `read begin && exec "$0" "$@"`, cmd.Path}, words...)
		cmd.Path, cmd.Dir = "/bin/sh", "/"
		begin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reused := cmd.Process.Pid == pid
		if reused {
			fmt.Fprintln(begin)
		}
		begin.Close()
		cmd.Wait()
		if reused {
			return out.String()
		}
	}
	t.Fatalf("the number %d was not given out again", pid)
	return ""
}

// firstProcess is the first process of the one sandbox in which a tool works.
func firstProcess(t *testing.T, w *world.World) int {
	t.Helper()
	for _, pid := range w.Working() {
		for at, err := pid, error(nil); err == nil && at > 1; at, err = procid.Parent(at) {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", at))
			for line := range strings.Lines(string(status)) {
				if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" && f[len(f)-1] == "1" {
					return at
				}
			}
		}
	}
	t.Fatalf("no first process of %v", w.Working())
	return 0
}

// TestSwappedDirectories: a user lets directories of sessions and links change
// places while root keeps the sessions.
func TestSwappedDirectories(t *testing.T) {
	t.Parallel()
	r := hostile.NewRace(t, hostile.Alice)
	r.Run(1000)
}

// TestPlantedLink: a link of a user's in the place of what root keeps for them, to
// what only root may write.
func TestPlantedLink(t *testing.T) {
	t.Parallel()
	hostile.Refused(t, hostile.Machine, func(t *testing.T, w *world.World) (done []string) {
		victim := w.Dir + "/roots"
		w.Mkdir(victim, 0o700)
		home := filepath.Join(w.Root, "home", strconv.Itoa(hostile.Alice), "agent", "a")
		for _, name := range []string{"session", "data", "cache"} {
			at := filepath.Join(home, name)
			if err := first(os.RemoveAll(at), os.Symlink(victim, at), os.Lchown(at, hostile.Alice, hostile.Alice)); err != nil {
				t.Fatal(err)
			}
			c := w.Dial("a")
			for _, line := range []string{
				owned(w, "tsh", map[string]any{"args": []string{"tools"}, "session": "new-" + name}),
				world.JSON(map[string]any{"op": "tsh", "id": hostile.ID(), "session": "private-" + name, "args": []string{"tools"}}),
			} {
				if f := c.Ask(line, "")[0]; f.Type() != "error" {
					c.Until("done")
				}
			}
			entries, err := os.ReadDir(victim)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				done = append(done, "make "+e.Name()+" by "+name)
				os.RemoveAll(victim + "/" + e.Name())
			}
			if err := first(os.Remove(at), os.Mkdir(at, 0o700), os.Chown(at, hostile.Alice, hostile.Alice)); err != nil {
				t.Fatal(err)
			}
		}
		return done
	}, "atomicfile:links+asuser:rights+capabilities:drop")
}
