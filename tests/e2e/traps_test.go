package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// bait are files that a program which trusts the directory it is in would read,
// with what they say; MARK is a command that leaves a mark on the host.
var bait = map[string]string{
	".git/HEAD": "ref: refs/heads/main\n", ".git/objects/info/alternates": "\n", ".git/refs/heads/main": strings.Repeat("0", 40) + "\n", ".git/index": "",
	".git/config": "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = MARK\n\tpager = MARK\n\teditor = MARK\n\tsshCommand = MARK\n\thooksPath = hooks\n" +
		"[alias]\n\tstatus = !MARK\n[diff]\n\texternal = MARK\n[include]\n\tpath = ../.gitconfig\n[filter \"x\"]\n\tclean = MARK\n\tsmudge = MARK\n",
	".gitconfig": "[core]\n\tfsmonitor = MARK\n", ".gitmodules": "[submodule \"x\"]\n\tpath = x\n\tupdate = !MARK\n", ".gitattributes": "* filter=x diff=x\n",
	".envrc": "MARK\n", ".env": "CTX_ROOT=/nowhere\nCTX_PATH=/workspace\nCTX_HOME=/nowhere\n", ".mise.toml": "[hooks]\nenter = \"MARK\"\n",
	".bashrc": "MARK\n", ".bash_profile": "MARK\n", ".bash_login": "MARK\n", ".profile": "MARK\n", ".zshrc": "MARK\n", ".zshenv": "MARK\n", ".tshrc": "MARK\n",
	".inputrc": "$include .envrc\n", ".vimrc": "!MARK\n", ".exrc": "!MARK\n", ".lesskey": "", ".editorconfig": "root = true\n", ".tmux.conf": "run-shell MARK\n",
	".netrc": "machine localhost\n", ".npmrc": "script-shell=MARK\n", ".vscode/tasks.json": "{}\n", ".mcp.json": `{"mcpServers":{"x":{"command":"MARK"}}}`,
	".claude/settings.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"MARK"}]}]}}`, ".codex/config.toml": "notify = [\"MARK\"]\n",
	".config/git/config": "[core]\n\tfsmonitor = MARK\n", ".config/cortexfs/providers.d/x": "base_url = \"http://localhost\"\n", ".cortexfs/config": "root /nowhere\n",
	".ctx/config": "root /nowhere\n", "cortexfs.toml": "", "ctx.toml": "", "ctx.json": "{}", "agent/m.d/policy": "version 0\nallow * * *\n",
	"tool/evil.d/effect": "pure\n", "status": "", "etc/ld.so.preload": "MARK\n", "sitecustomize.py": "import os; os.system('MARK')\n",
}

// decoys are programs under the names of those that the suite, its pagers, editors
// and sandboxes start.
var decoys = strings.Fields(`git bwrap bash sh ctx ctxd ctxmodel ctxterm ctxtool tsh less more pager cat vi nano editor env ls cp mkdir
	systemctl systemd-run sudo newuidmap direnv MARK tool/evil tool/fs.read hooks/pre.d/10-x hooks/post.d/10-x hooks/post-checkout hooks/pre-commit
	.git/hooks/post-checkout .git/hooks/pre-commit .git/hooks/fsmonitor-watchman .husky/pre-commit node_modules/.bin/git bin/git bin/ctxtool`)

// traps is a watch on files that nothing may open.
type traps struct {
	t    *testing.T
	fd   int
	name map[int32]string
}

func newTraps(t *testing.T) *traps {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &traps{t, fd, map[int32]string{}}
}

// set lays a file and watches it.
func (s *traps) set(path, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
	s.watch(path)
}

func (s *traps) watch(path string) {
	s.t.Helper()
	wd, err := unix.InotifyAddWatch(s.fd, path, unix.IN_OPEN|unix.IN_ACCESS)
	if err != nil {
		s.t.Fatal(err)
	}
	s.name[int32(wd)] = path
}

// sprung are the files that were opened since it was asked last, whoever did it,
// in whatever sandbox.
func (s *traps) sprung() (names []string) {
	s.t.Helper()
	buf := make([]byte, 1<<16)
	for {
		n, err := unix.Read(s.fd, buf)
		if err == unix.EAGAIN {
			return names
		}
		if err != nil {
			s.t.Fatal(err)
		}
		for b := buf[:n]; len(b) > 0; {
			wd, size := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[12:])
			if name := s.name[wd]; !slices.Contains(names, name) {
				names = append(names, name)
			}
			b = b[unix.SizeofInotifyEvent+size:]
		}
	}
}

// own gives everything below a directory to the world's user.
func own(t *testing.T, w *world.World, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(path, w.UID, w.UID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNothingOfAWorkspaceIsExecuted: whatever the suite is asked to do in a
// directory, none of its programs starts, sources or loads anything of it, on the
// host or in a sandbox: not one of the files is opened. The directory comes first on
// PATH, and is where all commands are given.
func TestNothingOfAWorkspaceIsExecuted(t *testing.T) {
	w := world.NewUser(t)
	marks := filepath.Join(w.Dir, "marks")
	w.Mkdir(marks, 0o777)
	s := newTraps(t)
	mark := filepath.Join(w.Workspace, "MARK")
	for name, text := range bait {
		s.set(filepath.Join(w.Workspace, name), strings.ReplaceAll(text, "MARK", mark), 0o644)
	}
	for _, name := range decoys {
		s.set(filepath.Join(w.Workspace, name), "#!/bin/sh\n: >"+marks+"/"+strings.ReplaceAll(name, "/", "-")+"\n", 0o755)
	}
	w.Write(w.Workspace+"/AGENTS.md", "The rules.\n")
	own(t, w, w.Workspace)
	w.Env = []string{"PATH=.:" + w.Workspace + ":" + w.Workspace + "/bin::/usr/bin:/bin", "SHELL=./bash", "PWD=" + w.Workspace}
	untouched := func(what string) {
		t.Helper()
		if names := s.sprung(); len(names) > 0 {
			t.Errorf("%s opened %s", what, strings.Join(names, ", "))
		}
		if left, err := os.ReadDir(marks); err != nil || len(left) > 0 {
			t.Fatalf("%s executed %v, %v", what, left, err)
		}
	}
	s.sprung()
	if !t.Run("the traps work", func(t *testing.T) { sprungByHand(t, s, w) }) {
		return
	}

	tools := []string{"fs.read", "fs.list", "fs.write", "bash", "shell.exec"}
	w.Puppet("coder", tools...)
	manned(w, "debug/tools", tools...)
	for _, line := range [][]string{
		{"init"}, {"status"}, {"doctor"}, {"env"}, {"abi"}, {"version"},
		{"agent", "ls"}, {"agent", "ps"}, {"agent", "show", "m"}, {"agent", "get", "m", "policy"}, {"agent", "set", "m", "timeout", "1m"},
		{"agent", "env", "m"}, {"agent", "tools", "m"}, {"agent", "inspect", "m"}, {"agent", "prompt", "m"},
		{"policy", "explain", "m", "fs.read"}, {"policy", "check", "m"}, {"tool", "ls", "m"}, {"tool", "which", "fs.read"}, {"tool", "help", "bash"},
		{"model", "ls"}, {"provider", "ls"}, {"model", "run", "debug/echo", "hello"},
		{"agent", "send", "m", "run: fs.list\nrun: fs.read AGENTS.md\nrun: fs.write new text"},
		{"agent", "send", "m", "run: bash -c 'echo $PATH; command -v git'\nrun: shell.exec cd /workspace; true; bash -lc true; sh -c true; bash -ic true"},
		{"agent", "send", "coder", "call shell.exec {\"cmd\":\"echo *\"}\n--\nsay done"},
		{"agent", "tsh", "m", "--", "fs.list"}, {"agent", "tsh", "m", "--", "tools"}, {"agent", "tsh", "m", "--", "load", "fs.read"},
		{"agent", "history", "m"}, {"agent", "output", "m"}, {"agent", "sessions", "m"}, {"agent", "usage", "m"}, {"agent", "changes", "m"}, {"agent", "status", "m"},
		{"agent", "start", "--supervisor", "direct", "coder"}, {"terminal", "list"}, {"terminal", "status", "terminal-coder-default"},
		{"agent", "send", "coder", "call bash {\"args\":[\"-c\",\"true\"]}\n--\nsay done"},
		{"agent", "stop", "coder"}, {"agent", "rm", "coder", "--purge"},
	} {
		r := w.Ctx(line...)
		if r.Code != 0 && line[0] != "doctor" && line[1] != "history" {
			t.Errorf("%v: %+v", line, r)
		}
		untouched(strings.Join(line, " "))
	}
}

// sprungByHand makes sure that the test would see it.
func sprungByHand(t *testing.T, s *traps, w *world.World) {
	for _, name := range []string{".envrc", ".git/config", "git"} {
		if _, err := os.ReadFile(filepath.Join(w.Workspace, name)); err != nil {
			t.Fatal(err)
		}
		if got := s.sprung(); !slices.Equal(got, []string{filepath.Join(w.Workspace, name)}) {
			t.Errorf("reading %s: %v", name, got)
		}
	}
}

// in makes a command start in a directory.
func in(dir string, cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir = dir
	return cmd
}

// TestNothingOfARepositoryIsExecuted: of the repository of a linked worktree and of
// a submodule only what points back is read, and nothing of it is executed.
func TestNothingOfARepositoryIsExecuted(t *testing.T) {
	w := modelled(t, "debug/tools", "shell.exec")
	marks := filepath.Join(w.Dir, "marks")
	w.Mkdir(marks, 0o777)
	repo, tree := filepath.Join(w.Dir, "repo"), filepath.Join(w.Dir, "linked")
	w.Mkdir(repo, 0o755)
	git(t, w, repo, "init", "-q")
	git(t, w, repo, "commit", "-q", "--allow-empty", "-m", "first")
	git(t, w, repo, "worktree", "add", "-q", tree)
	mark := filepath.Join(w.Dir, "MARK")
	w.Write(mark, "#!/bin/sh\n: >"+marks+"/mark\n")
	if err := os.Chmod(mark, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external", "core.hooksPath"} {
		git(t, w, repo, "config", key, mark)
	}
	own(t, w, repo)
	own(t, w, tree)
	s := newTraps(t)
	pointers := []string{"gitdir", "commondir"}
	err := filepath.WalkDir(repo+"/.git", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !slices.Contains(pointers, d.Name()) {
			s.watch(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, workspace := range []string{tree, repo, tree} {
		f := w.Dial("m").Ask(send(fmt.Sprint("m", i), "s", workspace, "run: shell.exec ls -a"), "done")
		if world.Last(f).Str("status") != "ok" {
			t.Errorf("%s", world.JSON(f))
		}
		if r := w.Run(in(workspace, w.Command("ctx", "agent", "prompt", "m"))); r.Code != 0 {
			t.Errorf("%+v", r)
		}
	}
	if names := s.sprung(); len(names) > 0 {
		t.Errorf("opened: %s", strings.Join(names, ", "))
	}
	// What the agent's own git does with such a configuration stays inside.
	f := w.Dial("m").Ask(send("git", "s", tree, "run: shell.exec git status; git log"), "done")
	if text := world.JSON(f); !strings.Contains(text, "first") {
		t.Errorf("git does not work inside: %s", text)
	}
	if left, err := os.ReadDir(marks); err != nil || len(left) > 0 {
		t.Errorf("executed: %v, %v", left, err)
	}
}
