package children

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// servers brings all servers up and returns their pids.
func (c *careless) servers() map[string]int {
	c.t.Helper()
	c.MustCtx("agent", "send", "a", "say hello")
	c.MustCtx("agent", "send", "m", "hello")
	return map[string]int{
		"ctxd serve": c.serve, "ctxd agent a": c.process("/ctxd", "agent", "a"), "ctxd agent m": c.process("/ctxd", "agent", "m"),
		"ctxmodel": c.process("/ctxmodel", "serve"),
	}
}

// TestPrivileges: a server has the capabilities it needs, which are those of the
// table in docs/security.md, for root, and none for anybody else; no program that
// it starts gets one from elsewhere.
func TestPrivileges(t *testing.T) {
	users(t, func(t *testing.T, c *careless) {
		for name, pid := range c.servers() {
			var held uint64
			if c.UID == 0 && name != "ctxmodel" {
				held = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN | 1<<unix.CAP_KILL | 1<<unix.CAP_SETFCAP
			}
			have, none := fmt.Sprintf("%016x", held), fmt.Sprintf("%016x", 0)
			want := []string{"Umask:\t0077", "CapInh:\t" + none, "CapPrm:\t" + have, "CapEff:\t" + have, "CapAmb:\t" + none, "NoNewPrivs:\t1"}
			if c.UID == 0 && name != "ctxmodel" { // nobody else can reduce it, or get anything from it
				want = append(want, "CapBnd:\t"+have)
			}
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
			if err != nil || len(threads) == 0 {
				t.Fatalf("%s: no threads: %v", name, err)
			}
			for _, thread := range threads {
				status, err := os.ReadFile(thread)
				if err != nil {
					continue // it has ended
				}
				for _, line := range want {
					if !strings.Contains(string(status), "\n"+line+"\n") {
						t.Errorf("%s: no line %q in\n%s", name, line, status)
					}
				}
			}
		}
	})
}

// TestServersInherit: a server has nothing open of whoever started it, and that
// of the models has none of its environment.
func TestServersInherit(t *testing.T) {
	users(t, func(t *testing.T, c *careless) {
		for name, pid := range c.servers() {
			if name == "ctxd serve" {
				continue // got it, and passes nothing on
			}
			c.leaked(name, pid)
			if name != "ctxmodel" || os.Geteuid() != 0 {
				continue // nobody but root can look
			}
			if env := c.Read(fmt.Sprintf("/proc/%d/environ", pid)); env != "LISTEN_FDS=1\x00" {
				t.Errorf("%s was started with %q", name, env)
			}
		}
	})
}

// look tries, as a program of a user outside of every sandbox, what there is to
// get out of a process, and says what it got.
const look = `
import ctypes, os, sys
pid = sys.argv[1]
for name in "mem", "environ", "maps", "auxv", "pagemap", "stack", "fd", "cwd", "root", "exe", "map_files":
    try:
        p = f"/proc/{pid}/{name}"
        if name in ("fd", "map_files"): os.listdir(p)
        elif name in ("cwd", "root", "exe"): os.readlink(p)
        else: open(p, "rb").read(1)
        print(name)
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, int(pid), 0, 0) == 0: print("ptrace") # PTRACE_ATTACH
fd = os.pidfd_open(int(pid))
if libc.syscall(438, fd, 0, 0) >= 0: print("pidfd_getfd")
`

// TestServerOfModels: keys are in its memory. Nothing of its user gets at that, it
// leaves no core, and it can be asked only by its own user.
func TestServerOfModels(t *testing.T) {
	users(t, func(t *testing.T, c *careless) {
		pid := c.servers()["ctxmodel"]
		limits := c.Read(fmt.Sprintf("/proc/%d/limits", pid))
		for line := range strings.Lines(limits) {
			if rest, ok := strings.CutPrefix(line, "Max core file size"); ok && strings.Join(strings.Fields(rest), " ") != "0 0 bytes" {
				t.Errorf("it leaves a core: %s", line)
			}
		}
		if c.UID == 0 {
			return // root may look into every process
		}
		cmd := c.Command("ctx")
		cmd.Path, cmd.Args = "/usr/bin/python3", []string{"python3", "-I", "-c", look, fmt.Sprint(pid)}
		if r := c.Run(cmd); r.Code != 0 || r.Out != "" {
			t.Errorf("its user gets: %s%s", r.Out, r.Err)
		}
	})
}
