// Package world is a small machine for tests: the suite's real programs, a tree,
// a runtime directory, workspaces and users, all temporary. Nothing in it is
// imitated.
package world

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Patience is how long a test waits for something that must happen. It is no
// measure of speed: only a failing test ever waits that long.
const Patience = 60 * time.Second

// World is one tree with everything around it.
type World struct {
	T         testing.TB
	Dir       string // holds all below; short, so that sockets fit
	Root      string // the tree
	Home      string
	Runtime   string // XDG_RUNTIME_DIR
	Layout    paths.Layout
	Workspace string // an ordinary directory with README.md
	UID       int    // as whom the programs run
	Bin       string
	Env       []string // added to every program's environment
}

// New makes a world for the present user, initialises its tree, and at the end
// of the test stops everything and checks that no process is left.
func New(t testing.TB) *World { return newWorld(t, os.Geteuid()) }

// NewAs makes a world of another uid, which need not have an account. Only uid 0
// may call it.
func NewAs(t testing.TB, uid int) *World {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("another uid needs root")
	}
	return newWorld(t, uid)
}

// Empty is New without a tree: the test makes it.
func Empty(t testing.TB) *World { return emptyWorld(t, os.Geteuid()) }

func newWorld(t testing.TB, uid int) *World {
	t.Helper()
	w := emptyWorld(t, uid)
	w.MustCtx("init")
	return w
}

func emptyWorld(t testing.TB, uid int) *World {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "cw")
	if err != nil {
		t.Fatal(err)
	}
	w := &World{
		T: t, Dir: dir, UID: uid, Bin: Bin(t),
		Root: dir + "/tree", Home: dir + "/home", Runtime: dir + "/run", Workspace: dir + "/work",
	}
	w.Layout = paths.New(paths.Env{RuntimeDir: w.Runtime, Home: w.Home, UID: uid}, w.Root)
	w.chown(dir)
	for _, d := range []string{w.Home, w.Runtime, w.Workspace} {
		w.Mkdir(d, 0o700)
	}
	w.Write(w.Workspace+"/README.md", "one\ntwo\nthree\n")
	t.Cleanup(w.close)
	return w
}

func (w *World) chown(path string) {
	if os.Geteuid() == 0 {
		if err := os.Lchown(path, w.UID, w.UID); err != nil {
			w.T.Fatal(err)
		}
	}
}

// Mkdir makes a directory of the world's user.
func (w *World) Mkdir(path string, perm os.FileMode) {
	w.T.Helper()
	if err := os.Mkdir(path, perm); err != nil {
		w.T.Fatal(err)
	}
	w.chown(path)
}

// Write makes a file of the world's user.
func (w *World) Write(path, text string) {
	w.T.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.T.Fatal(err)
	}
	w.chown(path)
}

// Read reads a file.
func (w *World) Read(path string) string {
	w.T.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.T.Fatal(err)
	}
	return string(b)
}

// Command prepares a program of the suite as the world's user, in the workspace.
func (w *World) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.Bin, name), args...)
	cmd.Dir = w.Workspace
	cmd.Env = append([]string{
		"HOME=" + w.Home, "XDG_RUNTIME_DIR=" + w.Runtime, "CTX_ROOT=" + w.Root, "PATH=/usr/bin:/bin",
		"CTX_TEST_SECRET=hunter2",
	}, w.Env...)
	if os.Geteuid() == 0 && w.UID != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
			Uid: uint32(w.UID), Gid: uint32(w.UID), NoSetGroups: false,
		}}
	}
	return cmd
}

// Result is what a program printed and how it ended.
type Result struct {
	Out, Err string
	Code     int
}

// Ctx runs ctx to its end.
func (w *World) Ctx(args ...string) Result {
	w.T.Helper()
	return w.Run(w.Command("ctx", args...))
}

// Run runs a prepared command to its end.
func (w *World) Run(cmd *exec.Cmd) Result {
	w.T.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	done := time.AfterFunc(Patience, func() { cmd.Process.Kill() })
	err := cmd.Start()
	if err != nil {
		w.T.Fatal(err)
	}
	err = cmd.Wait()
	done.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.T.Fatalf("%v: %v", cmd.Args, err)
	}
	return Result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// MustCtx runs ctx, fails the test unless it exits 0, and returns its output.
func (w *World) MustCtx(args ...string) string {
	w.T.Helper()
	r := w.Ctx(args...)
	if r.Code != 0 {
		w.T.Fatalf("ctx %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}

// Puppet makes an agent whose executable is the puppet, with these tools.
func (w *World) Puppet(name string, tools ...string) {
	w.T.Helper()
	args := []string{"agent", "new", name, "--exec", filepath.Join(w.Bin, "puppet")}
	for _, tool := range tools {
		args = append(args, "--tool", tool)
	}
	w.MustCtx(args...)
}

// Session is the directory of a session.
func (w *World) Session(agent, session string) string {
	return filepath.Join(w.Root, "home", strconv.Itoa(w.UID), "agent", agent, "session", session)
}

// Processes lists the processes of this world: those whose command line or
// environment names its directory, and those in its sandboxes. Zombies are left
// out.
func (w *World) Processes() []int {
	entries, _ := os.ReadDir("/proc")
	pids := w.Inside()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(line) == 0 {
			continue // gone, or a zombie
		}
		env, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		if bytes.Contains(line, []byte(w.Dir+"/")) || bytes.Contains(env, []byte("="+w.Dir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// close stops the world and fails the test if anything survives.
func (w *World) close() {
	for _, pid := range w.Processes() {
		unix.Kill(pid, unix.SIGTERM)
	}
	deadline := time.Now().Add(20 * time.Second)
	for len(w.Processes()) > 0 {
		if time.Now().After(deadline) {
			for _, pid := range w.Processes() {
				line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
				w.T.Errorf("process %d survives the test: %q", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
				unix.Kill(pid, unix.SIGKILL)
			}
			break
		}
		waitExit(w.Processes())
	}
	if w.T.Failed() {
		w.showLogs()
	}
	os.RemoveAll(w.Dir)
	os.RemoveAll(w.Layout.Runtime) // of uid 0 it lies in /run
}

// waitExit waits until one of the processes ends.
func waitExit(pids []int) {
	var fds []unix.PollFd
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			defer unix.Close(fd)
		}
	}
	if len(fds) > 0 {
		unix.Poll(fds, 2000)
	}
}

func (w *World) showLogs() {
	filepath.WalkDir(w.Layout.Runtime, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".log") {
			text, _ := os.ReadFile(path)
			if len(text) > 8000 {
				text = text[len(text)-8000:]
			}
			w.T.Logf("%s:\n%s", path, text)
		}
		return nil
	})
}
