package children

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// probe is Python that says what its process has: the object behind each open
// descriptor, the environment's names, and lines of its status.
const probe = `
import os
def found():
    fds = []
    for f in sorted(os.listdir("/proc/self/fd"), key=int):
        try: fds.append(f + " " + os.readlink("/proc/self/fd/" + f).split(":")[0])
        except OSError: pass # that of the listing itself
    status = [l.split()[1] for l in open("/proc/self/status") if l.split(":")[0] in ("Umask", "NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapBnd")]
    return "; ".join([", ".join(fds), " ".join(status), " ".join(sorted(k for k in os.environ if not k.startswith("CTX_"))), str("hunter2" in str(os.environ))])
`

// agent is an executable agent that answers with what it found.
const agent = `#!/usr/bin/python3
import json, sys` + probe + `
run = json.load(sys.stdin)["run"]
print(json.dumps({"type": "message", "run": run, "role": "assistant", "content": [{"type": "text", "text": found()}]}))
`

// What every child in a sandbox has but for its descriptors and its environment:
// the umask of people, no capability, no way to one, a filter.
const rights = "0022 0000000000000000 0000000000000000 0000000000000000 1 2"

// basics are the variables of a program in a sandbox, without those of the suite.
var basics = []string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// expect compares what a child found.
func expect(t *testing.T, child, found string, fds []string, environ ...string) {
	t.Helper()
	slices.Sort(environ)
	want := strings.Join([]string{strings.Join(fds, ", "), rights, strings.Join(environ, " "), "False"}, "; ")
	if found = strings.TrimSpace(found); found != want {
		t.Errorf("%s has\n%s\nwant\n%s", child, found, want)
	}
}

// TestSandboxes asks each kind of program that runs in a sandbox what it has.
func TestSandboxes(t *testing.T) {
	users(t, func(t *testing.T, c *careless) {
		piped := []string{"0 pipe", "1 pipe", "2 pipe"}
		c.Write(filepath.Join(c.Workspace, "probe.py"), probe+"print(found())\n")

		// A command of shell.exec.
		out, _, _ := strings.Cut(c.MustCtx("agent", "tsh", "a", "--", "shell.exec", "exec python3 probe.py"), "\n")
		expect(t, "a command", out, []string{"0 /dev/null", "1 pipe", "2 pipe"}, append([]string{"PWD"}, basics...)...)

		// A tool of the user's own.
		c.tool("own", probe+"print(found())\n")
		script := filepath.Join(c.Dir, "agent.py")
		c.Write(script, agent)
		if err := os.Chmod(script, 0o755); err != nil {
			t.Fatal(err)
		}
		c.MustCtx("agent", "new", "b", "--exec", script, "--tool", "own")
		c.AwaitExists(filepath.Join(c.Root, "agent", "b.sock"))
		expect(t, "a tool", c.MustCtx("agent", "tsh", "b", "--", "own"), []string{"0 /dev/null", "1 pipe", "2 pipe"}, basics...)

		// A hook of that tool, which has its own text besides.
		hooks := c.file("own.d/hooks/post.d")
		if err := os.MkdirAll(hooks, 0o755); err != nil {
			t.Fatal(err)
		}
		for dir := hooks; dir != c.file("own.d"); dir = filepath.Dir(dir) {
			if err := os.Chown(dir, c.UID, c.UID); err != nil {
				t.Fatal(err)
			}
		}
		c.Write(hooks+"/look", "#!/usr/bin/python3\n"+probe+"all = found()\nopen('/workspace/hooked', 'w').write(all)\n")
		if err := os.Chmod(hooks+"/look", 0o755); err != nil {
			t.Fatal(err)
		}
		c.MustCtx("agent", "tsh", "b", "--", "own")
		expect(t, "a hook", c.Read(c.Workspace+"/hooked"), append(piped, "3 /memfd"), basics...)

		// A step of an executable agent, in a sandbox that waited for it too.
		for range 3 {
			expect(t, "an agent", c.MustCtx("agent", "send", "b", "look"), piped, basics...)
		}
	})
}

// file is a path in the directory of the user's own tools.
func (c *careless) file(name string) string {
	return filepath.Join(c.Root, "home", strconv.Itoa(c.UID), "tool", name)
}

// tool makes a tool of the user's own, in Python.
func (c *careless) tool(name, text string) {
	c.t.Helper()
	file := c.file(name)
	c.Mkdir(file+".d", 0o755)
	c.Write(file, "#!/usr/bin/python3\n"+text)
	if err := os.Chmod(file, 0o755); err != nil {
		c.t.Fatal(err)
	}
	c.Write(file+".d/effect", "workspace_read\n")
}

// typist attaches to a terminal, types a line, and stays until a file is there.
const typist = `
import base64, json, os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
def say(**frame): s.sendall(json.dumps(frame).encode() + b"\n")
say(op="attach", cols=80, rows=24)
say(op="input", data_b64=base64.b64encode(sys.argv[2].encode() + b"\r").decode())
for line in s.makefile():
    if os.path.exists(sys.argv[3]): break
`

// TestTerminal: what is started on a terminal has the terminal, and nobody in its
// sandbox anything of whoever started it.
func TestTerminal(t *testing.T) {
	users(t, func(t *testing.T, c *careless) {
		c.tool("own", probe+`
all = found()
with open("/workspace/.found", "w") as f: f.write(all)
os.rename("/workspace/.found", "/workspace/found")
print("it is told")
`)
		c.MustCtx("agent", "new", "b", "--model", "debug/echo", "--tool", "own")
		cmd := c.Command("ctx", "--json", "agent", "start", "--supervisor", "direct", "b")
		cmd.ExtraFiles = c.leaks
		r := c.Run(cmd)
		var said struct{ Socket string }
		if err := json.Unmarshal([]byte(r.Out), &said); err != nil || r.Code != 0 {
			t.Fatalf("exit %d: %s%s", r.Code, r.Out, r.Err)
		}
		found := filepath.Join(c.Workspace, "found")
		typing := c.Command("ctx")
		typing.Path, typing.Args = "/usr/bin/python3", []string{"python3", "-I", "-c", typist, said.Socket, "own", found}
		if r := c.Run(typing); r.Code != 0 {
			t.Fatal(r.Err)
		}
		expect(t, "a command", c.Read(found), []string{"0 /dev/pts/0", "1 /dev/pts/0", "2 /dev/pts/0"},
			slices.DeleteFunc(slices.Clone(basics), func(name string) bool { return name == "PATH" })...)

		shells := 0
		for _, pid := range c.Inside() {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err != nil {
				continue // it has ended
			}
			program := filepath.Base(strings.Split(string(line), "\x00")[0])
			c.leaked(program, pid)
			if program == "tsh" {
				shells++
			}
			entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
			if program == "ctxterm" || err != nil {
				continue // it has its files; nobody but root can look
			}
			for _, e := range entries {
				target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
				kind, _, _ := strings.Cut(target, ":")
				if err == nil && !slices.Contains([]string{"pipe", "socket", "anon_inode", "/dev/null", "/dev/pts/0"}, kind) {
					t.Errorf("%s has %s open", program, target)
				}
			}
		}
		if shells != 1 {
			t.Errorf("%d shells", shells)
		}
	})
}
