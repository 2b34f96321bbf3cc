package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// git runs git as the world's user.
func (l *lab) git(dir string, args ...string) {
	l.T.Helper()
	path, err := exec.LookPath("git")
	must(l.T, err)
	cmd := l.Command("ctx")
	cmd.Path, cmd.Dir = path, dir
	cmd.Args = append([]string{"git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main"}, args...)
	if r := l.Run(cmd); r.Code != 0 {
		l.T.Fatalf("git %q: %+v", args, r)
	}
}

// does runs a script of bash in the terminal and returns what it printed.
func (r *room) does(script string) string {
	r.t.Helper()
	r.done++
	end := fmt.Sprintf("the end of %d", r.done)
	file := filepath.Join(r.Layout.AgentHome(uint32(r.UID), "coder"), "does-"+r.session+".sh")
	r.Write(file, "clear\n"+script+"\necho "+end+"\n")
	s := r.join(200, 60)
	s.Type("bash /home/agent/" + filepath.Base(file) + enter)
	s.See(end + "\n" + "coder tsh")
	ready(s)
	text := s.Text()
	detach(r.t, s)
	must(r.t, os.Remove(file))
	text = text[:strings.LastIndex(text, end)]
	if at := strings.LastIndex(text, ".sh\n"); at >= 0 {
		text = text[at+len(".sh\n"):]
	}
	return text
}

// TestInside: what a program in a terminal finds.
func TestInside(t *testing.T) {
	t.Parallel()
	l := newLab(t, "tmux")
	l.git(l.Workspace, "init", "-q")
	l.git(l.Workspace, "add", ".")
	l.git(l.Workspace, "commit", "-q", "-m", "x")
	before := listing(t, l.Workspace)
	r := l.start(t, "default")
	uid := strconv.Itoa(l.UID)

	user := strings.TrimSpace(r.does("id -un"))
	environ := []string{
		"CTX_ROOT=/ctx", "CTX_HOME=/ctx/home/" + uid, "CTX_AGENT=coder", "CTX_AGENT_SUBJECT=coder_t",
		"CTX_PATH=/ctx/tool:/ctx/home/" + uid + "/tool", "HOME=/home/agent", "USER=" + user, "LOGNAME=" + user,
		"SHELL=/bin/bash", "TERM=xterm-256color", "LANG=C.UTF-8",
	}
	for _, program := range []string{"tsh", "ctxterm"} {
		got, err := os.ReadFile("/proc/" + strconv.Itoa(l.inside(t, program)) + "/environ")
		if err == nil && string(got) != strings.Join(environ, "\x00")+"\x00" {
			t.Errorf("%s has %q", program, got)
		}
		if err != nil && program == "tsh" {
			t.Error(err)
		}
	}

	for script, want := range map[string]string{
		"pwd; echo $HOME $SHELL; cat README.md":                                                   "/workspace\n/home/agent /bin/bash\none\ntwo\nthree\n",
		"touch .git/x; echo a >.git/config; mv .git .gone; rm -rf .git/HEAD; git status":          "*Read-only file system",
		"git status --short; git log --format=%s; git -c core.pager= branch":                      "x\n* main\n",
		"touch ~/session/default/x; rm -rf ~/session; mv ~/session ~/other; ls ~/session/default": "*Read-only file system",
		"echo /home/* /run/* ~/session/*; env; cat /proc/[0-9]*/environ":                          "*/home/agent ",
		"ls -l /proc/[0-9]*/fd 2>/dev/null | grep -e main.sock -e ptmx":                           "",
		"[ -t 0 ] && tty && stty size":                                                            "/dev/pts/0\n60 200\n",
		"echo kept >~/.config-of-mine; mkdir -p ~/.cache/x; ls -A ~ | grep -c mine":               "1\n",
	} {
		got := r.does(script)
		if text, part := strings.CutPrefix(want, "*"); part && !strings.Contains(got, text) || !part && got != want {
			t.Errorf("%s: %q", script, got)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s: a secret", script)
		}
	}

	// What programs keep is in the agent's home.
	s := r.join(80, 24)
	s.Type("bash --norc" + enter)
	s.Await("the prompt", func(all string) bool { return strings.HasSuffix(all, "$") || strings.HasSuffix(all, "#") })
	s.Type("echo for the history" + enter + "exit" + enter)
	ready(s)
	detach(t, s)
	home := l.Layout.AgentHome(uint32(l.UID), "coder")
	if text := l.Read(home + "/.bash_history"); !strings.Contains(text, "echo for the history\n") {
		t.Errorf("%q", text)
	}
	if text := l.Read(home + "/.config-of-mine"); text != "kept\n" || !exists(home+"/.cache/x") {
		t.Errorf("%q", text)
	}
	l.MustCtx("agent", "stop", "coder")
	r.over("exited")
	if after := listing(t, l.Workspace); after != before {
		t.Errorf("in the workspace: %s", differing(before, after))
	}
	if names := listing(t, l.Home); strings.Contains(names, "history") || strings.Contains(names, "mine") {
		t.Errorf("in the user's home: %s", names)
	}
}

// TestWorkspaces: worktrees, read-only workspaces, mounts, start directories.
func TestWorkspaces(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.git(l.Workspace, "init", "-q")
	l.git(l.Workspace, "add", ".")
	l.git(l.Workspace, "commit", "-q", "-m", "x")
	tree := l.Dir + "/a tree (é)"
	l.git(l.Workspace, "worktree", "add", "-q", "-b", "other", tree)
	l.Mkdir(tree+"/src", 0o700)
	data := l.Dir + "/data"
	l.Mkdir(data, 0o700)
	before := listing(t, l.Workspace, tree, data)

	r := l.start(t, "tree", "--workspace", tree)
	for script, want := range map[string]string{
		"pwd; ls | cat; git status --short; git log --format=%s": "/workspace\nREADME.md\nsrc\nx\n",
		"echo x >.git":           "*Read-only file system",
		"rm -f .git; ls -d .git": "*\n.git\n",
		"git commit --allow-empty -m y; git log --format=%s | head -1": "*\nx\n",
	} {
		got := r.does(script)
		if text, part := strings.CutPrefix(want, "*"); part && !strings.Contains("\n"+got, text) || !part && got != want {
			t.Errorf("%s: %q", script, got)
		}
	}
	r = l.start(t, "mounts", "--workspace", tree, "--ro", "--cwd", "/workspace/src", "--mount", data+":/data:rw", "--mount", l.Workspace+":/other:ro")
	for script, want := range map[string]string{
		"pwd; touch x":   "*/workspace/src\ntouch: cannot touch 'x': Read-only file system\n",
		"touch /other/x": "*Read-only file system",
		"echo from inside >/data/made; cat /data/made /other/README.md; rm /data/made": "from inside\none\ntwo\nthree\n",
	} {
		got := r.does(script)
		if text, part := strings.CutPrefix(want, "*"); part && !strings.Contains(got, text) || !part && got != want {
			t.Errorf("%s: %q", script, got)
		}
	}
	l.MustCtx("agent", "stop", "coder")
	if after := listing(t, l.Workspace, tree, data); after != before {
		t.Errorf("left behind: %s", differing(before, after))
	}
}
