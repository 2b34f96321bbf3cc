package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// calls makes the input of a puppet that makes one call a step.
func calls(lines ...string) string { return strings.Join(lines, "\n--\n") + "\n--\nsay end" }

// results are the tool results among frames, status and content.
func results(f []world.Frame) (all []string) {
	for _, x := range f {
		if x.Type() == "tool_result" {
			all = append(all, x.Str("status")+": "+x.Str("content"))
		}
	}
	return all
}

// mustMatch holds the results against expressions, one for each.
func mustMatch(t *testing.T, f []world.Frame, want ...string) {
	t.Helper()
	got := results(f)
	if len(got) != len(want) {
		t.Fatalf("%d results: %s", len(got), world.JSON(f))
	}
	for i, w := range want {
		if !regexp.MustCompile(`(?s)^` + w + `$`).MatchString(got[i]) {
			t.Errorf("result %d is %q, not %s", i, got[i], w)
		}
	}
}

// TestFileTools: an agent writes a file, changes it, finds it and reads it; what
// it may not see stays closed, and effects are told as they are.
func TestFileTools(t *testing.T) {
	w := ready(t, "fs.write", "fs.replace", "fs.search", "fs.read", "fs.stat")
	c := w.Dial("a")
	f := c.Ask(send("m", "files", w.Workspace, calls(
		`call fs.write {"path":"src/deep/main.go","content":"package main\n\nfunc main() {\n}\n"}`,
		`call fs.replace {"path":"/workspace/src/deep/main.go","old":"{\n}","new":"{\n\tprintln(1)\n}"}`,
		`call fs.search {"pattern":"println","glob":"*.go","context":1}`,
		`call fs.replace {"path":"src/deep/main.go","old":"println(2)","new":"x"}`,
		`call fs.read {"path":"src/deep/main.go","start":4,"lines":1,"numbers":true}`,
		`call fs.write {"path":"README.md","content":"x","expected_hash":"`+strings.Repeat("0", 64)+`"}`,
		`call fs.write {"path":"/home/agent/data/notes","content":"mine\n"}`,
	)), "done")
	mustMatch(t, f,
		`ok: src/deep/main.go: created, 4 lines, 30 bytes\n\[sha256 [0-9a-f]{64}\]`,
		`ok: --- /workspace/src/deep/main.go\n\+\+\+ /workspace/src/deep/main.go\n@@ -1,4 \+1,5 @@\n package main\n \n func main\(\) \{\n\+\tprintln\(1\)\n \}\n\[sha256 [0-9a-f]{64}\]`,
		`ok: src/deep/main.go-3- func main\(\) \{\nsrc/deep/main.go:4: \tprintln\(1\)\nsrc/deep/main.go-5- \}\n\[1 matching line in 1 file\]`,
		`error: src/deep/main.go: old does not occur in it \(most similar: line 4: "\\tprintln\(1\)"\)`,
		`ok:      4\t\tprintln\(1\)\n\[sha256 [0-9a-f]{64}\]\n\[lines 4-4 of 5; next: start=5\]`,
		`error: README.md: has another content than expected, sha256 [0-9a-f]{64} \(it was changed meanwhile: read it again\)`,
		`ok: /home/agent/data/notes: created, 1 line, 5 bytes\n.*`,
	)
	var effects []string
	for _, x := range f {
		if x.Type() == "tool_policy" {
			effects = append(effects, x.Str("effect"))
		}
	}
	if got := strings.Join(effects, " "); got != "workspace_mutation workspace_mutation workspace_read workspace_mutation workspace_read workspace_mutation host_mutation" {
		t.Errorf("effects %s", got)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(w.Workspace, "src/deep/main.go"), &st); err != nil || int(st.Uid) != w.UID || st.Mode&0o777 != 0o644 {
		t.Errorf("the file is of uid %d, mode %o, %v", st.Uid, st.Mode, err)
	}
	if got := w.Read(w.Workspace + "/README.md"); got != "one\ntwo\nthree\n" {
		t.Errorf("README.md holds %q", got)
	}

	// Out of reach: links, what the sandbox shows read-only, repositories' metadata.
	outside := filepath.Join(w.Dir, "outside")
	w.Write(outside, "outside\n")
	for name, target := range map[string]string{"link": outside, "dangling": w.Dir + "/created", "dir": w.Dir} {
		if err := os.Symlink(target, filepath.Join(w.Workspace, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.Mkdir(w.Workspace+"/.git", 0o755)
	w.Write(w.Workspace+"/.git/config", "[core]\n")
	f = c.Ask(send("m2", "files", w.Workspace, calls(
		`call fs.write {"path":"link","content":"x"}`,
		`call fs.write {"path":"dangling","content":"x"}`,
		`call fs.write {"path":"dir/new","content":"x"}`,
		`call fs.write {"path":".git/config","content":"x"}`,
		`call fs.write {"path":"/ctx/tool/fs.read","content":"x"}`,
		`call fs.write {"path":"/ctx/home/me/x","content":"x"}`,
		`call fs.replace {"path":"/etc/passwd","old":"root","new":"x"}`,
	)), "done")
	mustMatch(t, f, `error: link: .*symbolic link.*`, `error: dangling: .*symbolic link.*`, `error: dir/new: .*symbolic link.*`,
		`error: \.git/config: .*read-only.*`, `error: /ctx/tool/fs.read: .*`, `error: /ctx/home/me/x: .*`, `error: /etc/passwd: .*`)
	if w.Read(outside) != "outside\n" || w.Read(w.Workspace+"/.git/config") != "[core]\n" {
		t.Error("something out of reach was changed")
	}
	if _, err := os.Lstat(w.Dir + "/created"); err == nil {
		t.Error("something was created behind a dangling link")
	}
}

// TestLongOutput: of a long output head and tail are the result, all of it is in
// a file that fs.read pages, by its own session as a workspace_read.
func TestLongOutput(t *testing.T) {
	w := ready(t, "bash", "shell.exec", "fs.read")
	c := w.Dial("a")
	f := c.Ask(send("m", "long", w.Workspace, calls(
		`call bash {"script":"for i in {1..20000}; do echo \"line $i\"; done; exit 3"}`,
		`call bash {"args":["-c","echo \"$1\"","bash","two  words"]}`,
	)), "done")
	got := results(f)
	if len(got) != 2 || !strings.HasPrefix(got[0], "error: line 1\n") || !strings.Contains(got[0], "\nline 20000\n[exit 3, ") || !strings.HasPrefix(got[1], "ok: two  words\n[exit 0, ") {
		t.Fatalf("%.200q", got)
	}
	m := regexp.MustCompile(`\[full output, (\d+) bytes in 20000 lines: (/home/agent/cache/spill/long/\S+); fs.read pages it\]$`).FindStringSubmatch(got[0])
	if m == nil {
		t.Fatalf("no file is named: %q", got[0][len(got[0])-200:])
	}
	read := fmt.Sprintf(`call fs.read {"path":%q,"start":10000,"lines":2}`, m[2])
	for session, effect := range map[string]string{"long": "workspace_read", "other": "host_read"} {
		f = c.Ask(send("r-"+session, session, w.Workspace, calls(read)), "done")
		mustMatch(t, f, `ok: line 10000\nline 10001\n\[sha256 [0-9a-f]{64}\]\n\[lines 10000-10001 of 20000; next: start=10002\]`)
		for _, x := range f {
			if x.Type() == "tool_policy" && x.Str("effect") != effect {
				t.Errorf("read by session %s: %v", session, x)
			}
		}
	}
	// Under a controlled policy the own one is open and the other's is not.
	w.MustCtx("agent", "set", "a", "effects", "controlled")
	mustMatch(t, c.Ask(send("c-long", "long", w.Workspace, calls(read)), "done"), `ok: line 10000\n.*`)
	mustMatch(t, c.Ask(send("c-other", "other", w.Workspace, calls(read)), "done"), `error: not permitted`)
}

// TestStubbornTools: calls end whatever the command does, and leave nothing.
func TestStubbornTools(t *testing.T) {
	w := ready(t, "shell.exec")
	c := w.Dial("a")
	f := c.Ask(send("m", "s", w.Workspace, calls(
		`call shell.exec {"cmd":"echo before; exec >&- 2>&-; exec sleep 1000","timeout_ms":300}`,
		`call shell.exec {"cmd":"echo before; kill -STOP $$","timeout_ms":300}`,
		`call shell.exec {"cmd":"i=0; while [ $i -lt 500 ]; do setsid sleep 1000 & i=$((i+1)); done; echo $i"}`,
		`call shell.exec {"cmd":"cat /dev/zero","timeout_ms":300}`,
		`call shell.exec {"cmd":"i=0; while [ $i -le 100 ]; do printf '\\r%3d%%' $i; i=$((i+1)); done; echo"}`,
	)), "done")
	mustMatch(t, f,
		`error: before\n\[timed out after 300ms and was killed, .*`,
		`error: before\n\[timed out after 300ms and was killed, .*`,
		`ok: 500\n\[exit 0, .*`,
		`error: \x{2400}+.*bytes left out.*\[timed out after 300ms.*(first 16 MiB, as text, of an output of|full output,) \d+ bytes.*: /home/agent/cache/spill/s/.*`,
		`ok: 100%\n\[exit 0, .*carriage returns.*`,
	)
	w.AwaitGone("after the calls", w.Working)
}

// TestKilledTool: a command that kills the tool it runs in is told as one, with
// what the tool had read of it.
func TestKilledTool(t *testing.T) {
	w := ready(t, "shell.exec")
	// More than a pipe holds: when it is written, its begin was read.
	const say = `echo before; head -c 300000 /dev/zero | tr '\0' x; `
	f := w.Dial("a").Ask(send("m", "s", w.Workspace, calls(
		`call shell.exec {"cmd":"`+strings.ReplaceAll(say, `\`, `\\`)+`kill -KILL $PPID"}`,
		`call shell.exec {"cmd":"echo before; kill -TERM $PPID; exec sleep 1000"}`,
		`call shell.exec {"cmd":"echo after"}`,
	)), "done")
	mustMatch(t, f,
		`error: tool output: there is no done frame: the tool was killed, or ended without an answer\nbefore\nx+.*exit code 137 \(SIGKILL\)`,
		`error: before\n\[cancelled and killed \(.*terminated.*\), exit .*`,
		`ok: after\n\[exit 0, .*`,
	)
	w.AwaitGone("after the calls", w.Working)
}

// TestExamplesOfHelp: what the help of a built-in tool shows works as it is typed.
func TestExamplesOfHelp(t *testing.T) {
	tools := []string{"bash", "fs.list", "fs.read", "fs.replace", "fs.search", "fs.stat", "fs.write", "shell.exec", "tsh.config"}
	w := ready(t, tools...)
	for _, dir := range []string{"src", "logs", "docs"} {
		w.Mkdir(filepath.Join(w.Workspace, dir), 0o755)
	}
	for name, text := range map[string]string{
		"build.sh": "echo built $1\n", "one.txt": "1\n", "a.txt": "colour and colour\n", "config.ini": "port = 80\n",
		"src/main.go": strings.Repeat("func main // TODO\n", 200), "logs/2026-05-01.txt": "", "logs/2026-05-02.txt": "", "docs/a.md": "Timeout\n",
		"main.go": "func a() {\n\treturn nil\n}\n\nfunc b() {\n", "data.json": strings.Repeat("x", 3000), "Makefile": "test:\n\t@echo tested\n",
	} {
		w.Write(filepath.Join(w.Workspace, name), text)
	}
	for _, tool := range tools {
		_, after, ok := strings.Cut(w.MustCtx("tool", "help", tool), "\nexamples, behind ctx agent tsh AGENT --\n")
		if !ok || after == "" {
			t.Errorf("%s has no examples", tool)
		}
		for line := range strings.Lines(after) {
			cmd := w.Command("ctx")
			cmd.Args = []string{"sh", "-c", `"$0" agent tsh a -- ` + line, cmd.Path}
			cmd.Path = "/bin/sh"
			r := w.Run(cmd)
			if tool == "tsh.config" && strings.Contains(line, "--") {
				if r.Code == 0 || !strings.Contains(r.Out+r.Err, "from inside an agent") {
					t.Errorf("an agent changes settings: %s%+v", line, r)
				}
				continue
			}
			if r.Code != 0 || r.Out == "" {
				t.Errorf("%s%+v", line, r)
			}
		}
	}
}
