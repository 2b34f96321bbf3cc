package sandboxrun

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/workspace"
)

func TestWorkspacePlaces(t *testing.T) {
	w := newWorld(t)
	for _, parent := range []string{"/tmp", "/home", "/run", "/var/tmp", "/srv", "/opt"} {
		dir, err := os.MkdirTemp(parent, "sandbox-")
		if err != nil && parent != "/tmp" && w.id.UID == uint32(os.Geteuid()) {
			continue // an ordinary user has no place there
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		w.own(dir)
		for _, name := range []string{"plain", "with space", "(par)ens", "ünï-код", "new\nline", "-dash", "'quote\"", "%s:x"} {
			w.ws = filepath.Join(dir, name)
			w.mkdir(w.ws)
			w.write(filepath.Join(w.ws, "in"), "content")
			if got := w.sh("cat in; cp in out; pwd"); got != "content/workspace" {
				t.Errorf("%q: %q", w.ws, got)
			}
			if text, _ := os.ReadFile(filepath.Join(w.ws, "out")); string(text) != "content" {
				t.Errorf("%q: wrote %q", w.ws, text)
			}
		}
	}
}

func TestWorkspaceStaysClean(t *testing.T) {
	w := newWorld(t)
	before := w.listing()
	w.sh("ls -la")
	ctx, cancel := context.WithCancel(context.Background())
	during := ""
	w.l.Run(ctx, w.spec("/bin/sleep", "1000"), Stdio{Started: func(procid.ID) error {
		during = w.listing()
		cancel()
		return nil
	}})
	if after := w.listing(); during != before || after != before {
		t.Errorf("before %q, during %q, after %q", before, during, after)
	}
}

func TestWorkspaceNotWritable(t *testing.T) {
	w := newWorld(t)
	if err := os.Chmod(w.ws, 0o555); err != nil {
		t.Fatal(err)
	}
	if got := w.sh("touch x 2>/dev/null || echo no"); got != "no" {
		t.Error(got)
	}
}

// git runs git as the agent's user, in dir.
func (w *world) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e",
		"-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", "-C", dir}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	if !w.id.IsSelf() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: w.id.UID, Gid: w.id.GID}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// repository makes a repository with one commit.
func (w *world) repository(dir string) {
	w.t.Helper()
	w.mkdir(dir)
	w.git(dir, "init", "-q")
	w.write(filepath.Join(dir, "file"), "text\n")
	w.git(dir, "add", "file")
	w.git(dir, "commit", "-qm", "first")
}

// works checks that git can read but not write in the workspace.
func (w *world) works(what string) {
	w.t.Helper()
	got := w.sh("export GIT_OPTIONAL_LOCKS=0; git log --format=%s && git status --porcelain && echo more >file && git status --porcelain")
	if got != "first\n M file" && got != "first\nM file" {
		w.t.Errorf("%s: git inside says %q", what, got)
	}
	code, out, errs := w.run(w.spec("/bin/sh", "-c", "git -c user.name=n -c user.email=e commit -qam second"), "")
	if code == 0 {
		w.t.Errorf("%s: commit succeeded: %s%s", what, out, errs)
	}
	w.git(w.ws, "checkout", "-q", "file")
	w.git(w.ws, "fsck")
}

func TestGitDirectory(t *testing.T) {
	w := newWorld(t)
	w.ws = filepath.Join(w.dir, "repo")
	w.repository(w.ws)
	w.works("repository")
	before := w.listing()
	got := w.sh(`exec 2>/dev/null
echo evil >.git/hooks/post-checkout && echo hook
echo evil >>.git/config && echo config
mv .git .old && echo moved
rm -rf .git && echo removed
rmdir .git && echo removed
mkdir new && mv .git new && echo moved
rm -rf new
ln -sfn /tmp .git && echo linked
git config core.pager evil && echo configured
true`)
	if got != "" && got != "linked" { // ln puts its link into the directory it finds, or fails
		t.Errorf("inside: %s", got)
	}
	if after := w.listing(); after != before {
		t.Errorf("changed:\n%s", after)
	}
	// Below a repository's top there is nothing to protect, and git finds none.
	sub := filepath.Join(w.ws, "sub")
	w.mkdir(sub)
	w.ws = sub
	if got := w.sh("git rev-parse --git-dir 2>&1 || true"); !strings.Contains(got, "not a git repository") {
		t.Errorf("in a subdirectory: %s", got)
	}
}

func TestGitWorktree(t *testing.T) {
	w := newWorld(t)
	main := filepath.Join(w.dir, "main repo")
	w.repository(main)
	w.ws = filepath.Join(w.dir, "linked tree")
	w.git(main, "worktree", "add", "-q", "-b", "linked", w.ws)
	w.works("worktree")
	got := w.sh(`exec 2>/dev/null; echo "gitdir: /tmp/x" >.git && echo pointer; mv .git x && echo moved
d=$(git rev-parse --git-common-dir) && echo evil >"$d/hooks/post-checkout" && echo hook; true`)
	if got != "" {
		t.Errorf("inside: %s", got)
	}
	if n := len(w.resolve(w.ws).ReadOnly); n != 2 {
		t.Errorf("%d read-only objects", n)
	}

	// The same with relative pointers.
	found, err := filepath.Glob(filepath.Join(main, ".git/worktrees/*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	gitdir := found[0]
	w.write(filepath.Join(w.ws, ".git"), "gitdir: ../main repo/.git/worktrees/"+filepath.Base(gitdir)+"\n")
	w.write(filepath.Join(gitdir, "gitdir"), "../../../../linked tree/.git\n")
	got = w.sh("export GIT_OPTIONAL_LOCKS=0; git log --format=%s && git status --porcelain")
	if got != "first" {
		t.Errorf("relative worktree: %q", got)
	}
}

func TestGitSubmodule(t *testing.T) {
	w := newWorld(t)
	part, super := filepath.Join(w.dir, "part"), filepath.Join(w.dir, "super")
	w.repository(part)
	w.repository(super)
	for _, at := range []string{"sub", "libs/deep/sub two"} {
		w.git(super, "submodule", "--quiet", "add", part, at)
		w.git(super, "commit", "-qam", "add "+at)
		w.ws = filepath.Join(super, at)
		w.works(at)
	}
	// The whole: its submodules' repositories are in its own .git.
	w.ws = super
	if got := w.sh("git -C sub log --format=%s; (echo evil >.git/modules/sub/config) 2>/dev/null || echo protected"); got != "first\nprotected" {
		t.Errorf("superproject: %q", got)
	}
}

func TestForgedPointer(t *testing.T) {
	w := newWorld(t)
	victim := filepath.Join(w.dir, "victim")
	w.repository(victim)
	other := filepath.Join(w.dir, "other")
	w.git(victim, "worktree", "add", "-q", other)
	secret := filepath.Join(w.dir, "secret")
	w.mkdir(secret)
	w.write(filepath.Join(secret, "key"), "hush")
	w.write(filepath.Join(secret, "config"), "[core]\n\tworktree = /elsewhere\n")
	w.mkdir(filepath.Join(w.ws, "fake"))
	w.mkdir(filepath.Join(w.ws, "fake/worktrees"))
	if err := os.Symlink(secret, filepath.Join(w.ws, "fake/worktrees/x")); err != nil {
		t.Fatal(err)
	}
	for _, pointer := range []string{
		victim + "/.git", victim + "/.git/worktrees/other", secret, "../secret", "../victim/.git",
		"fake/worktrees/x", "fake", "/", "..", ".", "/proc/self/root", "/workspace/fake", "",
	} {
		w.write(filepath.Join(w.ws, ".git"), "gitdir: "+pointer+"\n")
		ws := w.resolve(w.ws)
		if len(ws.ReadOnly) != 1 || len(ws.Links) != 0 {
			t.Errorf("%q shows %v %v", pointer, ws.ReadOnly, ws.Links)
		}
		if got := w.sh("cat " + secret + "/key /secret/key 2>/dev/null; git log 2>/dev/null; true"); got != "" {
			t.Errorf("%q gains %q", pointer, got)
		}
	}
}

func TestExchanged(t *testing.T) {
	w := newWorld(t)
	secret := filepath.Join(w.dir, "secret")
	w.mkdir(secret)
	w.write(filepath.Join(secret, "key"), "hush")
	run := func(s sandbox.Spec) {
		t.Helper()
		var out bytes.Buffer
		_, err := w.l.Run(context.Background(), s, Stdio{Stdout: &out, Stderr: &out})
		// bwrap may stumble over it before the entry step looks.
		if k := errdefs.KindOf(err); k != errdefs.Denied && k != errdefs.Unavailable || out.Len() > 0 {
			t.Errorf("err %v, output %q", err, out.String())
		}
	}
	exchange := func(path, leadsTo string) {
		t.Helper()
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(leadsTo, path); err != nil {
			t.Fatal(err)
		}
	}
	restore := func(path string) {
		os.Remove(path)
		os.Rename(path+".old", path)
	}

	// A protected name of the workspace, by something that runs beside.
	w.mkdir(filepath.Join(w.ws, ".hg"))
	s := w.spec("/bin/sh", "-c", "cat .hg/key; touch ran")
	exchange(filepath.Join(w.ws, ".hg"), secret)
	run(s)
	restore(filepath.Join(w.ws, ".hg"))

	// The workspace itself.
	s = w.spec("/bin/sh", "-c", "cat key; touch ran")
	exchange(w.ws, secret)
	run(s)
	restore(w.ws)

	// Both by other directories, to which no link leads.
	s = w.spec("/bin/sh", "-c", "touch ran")
	for _, dir := range []string{filepath.Join(w.ws, ".hg"), w.ws} {
		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		w.mkdir(dir)
		w.write(filepath.Join(dir, "x"), "")
		if dir == w.ws {
			w.mkdir(filepath.Join(dir, ".hg"))
		}
		run(s)
		os.RemoveAll(dir)
		restore(dir)
	}

	// A home between the check and the launch can not be had in a test; the
	// entry step compares it in the same way.
	s = w.spec("/bin/sh", "-c", "touch ran")
	s.Expect = []sandbox.Expect{{Path: "/home/agent", Dev: 1, Ino: 1}}
	run(s)

	for _, dir := range []string{w.ws, secret} {
		if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
			t.Error("the payload ran in", dir)
		}
	}

	// A link where the home or its session directory should be.
	exchange(filepath.Join(w.dir, "home/session"), secret)
	if _, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("a linked session directory: %v", err)
	}
	os.Remove(filepath.Join(w.dir, "home/session"))
	if _, err := w.l.Run(context.Background(), w.spec("/bin/true"), Stdio{}); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("no session directory: %v", err)
	}
}

func TestGitLinkIsRefused(t *testing.T) {
	w := newWorld(t)
	w.mkdir(filepath.Join(w.ws, "real"))
	for _, to := range []string{"real", "/etc", "missing"} {
		link := filepath.Join(w.ws, ".git")
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		_, err := workspace.Resolve(w.ws, w.id, nil, workspace.Protect{})
		if !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), ".git") {
			t.Errorf("%s: %v", to, err)
		}
		os.Remove(link)
	}
}
