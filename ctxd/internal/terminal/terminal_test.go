package terminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/session"
	resource "cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/view"
	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	w := newWorld(t)
	end := w.ending()
	before := w.listing()
	var said bytes.Buffer
	cfg := w.config(&said)
	cfg.Size = termwire.Size{Cols: 100, Rows: 30}
	t.Setenv("SECRET_TOKEN", "hush")
	over := w.start(t.Context(), cfg)

	meta, err := w.place().Load()
	w.ok(err)
	want := resource.Meta{
		ID: "terminal-coder-work", Agent: "coder", Session: "work", Owner: meta.Owner, Cwd: "/workspace", Command: []string{"/ctx/bin/tsh"},
		Workspace: w.ws, State: resource.Running, Socket: w.socket(), CreatedAt: meta.CreatedAt, Size: "100x30", Supervisor: "direct", Emit: true,
	}
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Error(diff)
	}
	for path, mode := range map[string]os.FileMode{
		w.socket():               os.ModeSocket | 0o600,
		filepath.Dir(w.socket()): os.ModeDir | 0o700,
		w.layout.Terminals:       os.ModeDir | 0o700,
		w.layout.TerminalResource(uint32(os.Geteuid()), "coder", "work"): os.ModeDir | 0o700,
		filepath.Dir(w.link()): os.ModeDir | 0o700,
	} {
		if st, err := os.Lstat(path); err != nil || st.Mode() != mode {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if to, err := os.Readlink(w.link()); err != nil || to != w.socket() {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	c, err := unixsock.Dial(t.Context(), w.link())
	w.ok(err)
	f, err := hello(c)
	if _, ok := f.(*termwire.Hello); err != nil || !ok {
		t.Errorf("%v, %v", f, err)
	}
	c.Close()

	// What ctxterm sees is the contract's, to the letter.
	a, err := view.Load(w.layout, "coder")
	w.ok(err)
	seen := read(t, filepath.Join(w.layout.TerminalResource(uint32(os.Geteuid()), "coder", "work"), "seen"))
	if want := "--listen fd:3 --dir fd:4 --size 100x30 -- /ctx/bin/tsh\n/workspace\n" +
		strings.Join(a.TerminalEnviron(), "\x00") + "\x00"; seen != want {
		t.Error(cmp.Diff(want, seen))
	}

	// The session can be used, and a second terminal of it can not be had.
	s, err := session.Place{Layout: w.layout, Agent: "coder", Owner: asuser.Self()}.Open("work")
	w.ok(err)
	w.ok(s.Close())
	if _, err := Run(t.Context(), w.config(&said)); !errdefs.Is(err, errdefs.Exists) {
		t.Errorf("a second one: %v", err)
	}
	c, err = unixsock.Dial(t.Context(), w.link())
	w.ok(err)
	c.Close()

	end("5")
	if o := <-over; o.err != nil || o.exit != 5 {
		t.Errorf("exit %d, %v", o.exit, o.err)
	}
	meta, err = w.place().Load()
	w.ok(err)
	if meta.State != resource.Exited || meta.ExitCode == nil || *meta.ExitCode != 5 {
		t.Errorf("%+v", meta)
	}
	for _, path := range []string{w.link(), filepath.Join(w.layout.Terminals, "coder")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if now := w.listing(); !strings.Contains(now, "/ws/end") || strings.Count(now, "/ws") != strings.Count(before, "/ws") {
		t.Errorf("the workspace: %s", now)
	}
}

// TestStop: the end of the context is an end of the terminal, not a failure.
func TestStop(t *testing.T) {
	w := newWorld(t)
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	over := w.start(ctx, w.config(&said))
	cancel()
	if o := <-over; o.err != nil || o.exit != 7 {
		t.Errorf("exit %d, %v, %s", o.exit, o.err, said.String())
	}
	meta, err := w.place().Load()
	if err != nil || meta.State != resource.Exited || meta.ExitCode == nil || *meta.ExitCode != 7 {
		t.Errorf("%+v, %v", meta, err)
	}
	// And the next one starts where it was.
	over = w.start(t.Context(), w.config(&said))
	if meta, err := w.place().Load(); err != nil || meta.State != resource.Running || meta.ExitCode != nil {
		t.Errorf("%+v, %v", meta, err)
	}
	_ = over
}

// TestFailedStart: whatever a start fails of, nothing of it is left; the error
// says what it was.
func TestFailedStart(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		break_ func(*world, *Config)
		kind   errdefs.Kind
		text   string
	}{
		"dies":            {func(w *world, _ *Config) { w.mode("die") }, errdefs.Unavailable, "ended with code 3 before it answered: no terminal today"},
		"refuses":         {func(w *world, _ *Config) { w.mode("refuse") }, errdefs.Denied, "not you"},
		"nobody waits":    {func(_ *world, c *Config) { c.Ready = func() error { return gone } }, errdefs.Internal, "gone"},
		"no ctxterm":      {func(_ *world, c *Config) { c.Ctxterm = "" }, errdefs.Unavailable, "ctxterm is not installed"},
		"a bad ctxterm":   {func(_ *world, c *Config) { c.Ctxterm = "/etc/passwd" }, errdefs.Denied, "/ctx/bin/ctxterm"},
		"no workspace":    {func(w *world, c *Config) { c.Sandbox.Workspace = w.dir + "/none" }, errdefs.NotFound, "none"},
		"the tree":        {func(w *world, c *Config) { c.Sandbox.Workspace = w.layout.Root }, errdefs.Invalid, "belongs to the runtime"},
		"the terminals":   {func(w *world, c *Config) { c.Sandbox.Workspace = w.dir + "/run" }, errdefs.Invalid, "belongs to the runtime"},
		"a cwd not there": {func(_ *world, c *Config) { c.Sandbox.Cwd = "/workspace/none" }, errdefs.NotFound, "cwd"},
		"two mounts": {func(w *world, c *Config) {
			l := mount.Line{Source: w.ws, Target: "/opt/x"}
			c.Sandbox.Mounts = mount.Table{l, l}
		}, errdefs.Invalid, "/opt/x"},
		"a file in place of the link": {func(w *world, _ *Config) {
			w.ok(os.MkdirAll(filepath.Dir(w.link()), 0o700))
			w.ok(os.WriteFile(w.link(), nil, 0o600))
		}, errdefs.Exists, "in the way"},
		"a linked .git": {func(w *world, _ *Config) { w.ok(os.Symlink("/nowhere", w.ws+"/.git")) }, errdefs.Invalid, "symbolic link"},
		"no such agent": {func(_ *world, c *Config) { c.Tools.Agent = "nobody" }, errdefs.NotFound, "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var said bytes.Buffer
			cfg := w.config(&said)
			c.break_(w, &cfg)
			w.warm()
			before := w.listing()
			_, err := Run(t.Context(), cfg)
			if !errdefs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v: %s", errdefs.KindOf(err), err)
			}
			if diff := cmp.Diff(before, w.listing()); diff != "" {
				t.Errorf("left behind:\n%s", diff)
			}
		})
	}
}

// warm makes what a first start of anything makes and keeps: the directories of
// the runtime and of the views.
func (w *world) warm() {
	k, err := w.place().Own()
	w.ok(err)
	k.Release()
	w.ok(os.MkdirAll(w.layout.View("coder"), 0o700))
}

// TestFailedRestart: a start that fails where a terminal was before keeps what
// is known of it, and says so.
func TestFailedRestart(t *testing.T) {
	w := newWorld(t)
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	over := w.start(ctx, w.config(&said))
	cancel()
	<-over
	events := filepath.Join(w.layout.TerminalResource(uint32(os.Geteuid()), "coder", "work"), "events.jsonl")
	w.ok(os.WriteFile(events, []byte("kept"), 0o600))
	w.mode("die")
	if _, err := Run(t.Context(), w.config(&said)); err == nil {
		t.Error("started")
	}
	meta, err := w.place().Load()
	if err != nil || meta.State != resource.Error || !strings.Contains(meta.Error, "no terminal today") || read(t, events) != "kept" {
		t.Errorf("%+v, %v", meta, err)
	}
}

// TestStopWhileStarting: a start that is ended before it is ready is one that
// failed.
func TestStopWhileStarting(t *testing.T) {
	w := newWorld(t)
	w.mode("mute")
	w.warm()
	before := w.listing()
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, w.config(&said)); !errdefs.Is(err, errdefs.Cancelled) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, w.listing()); diff != "" {
		t.Errorf("left behind:\n%s", diff)
	}
}

// TestRace: of many starts at once exactly one wins.
func TestRace(t *testing.T) {
	w := newWorld(t)
	end := w.ending()
	var won, exists int
	var mu sync.Mutex
	var all sync.WaitGroup
	ready := make(chan struct{}, 8)
	for range 4 {
		all.Go(func() {
			var said bytes.Buffer
			cfg := w.config(&said)
			cfg.Ready = func() error { ready <- struct{}{}; return nil }
			_, err := Run(t.Context(), cfg)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errdefs.Is(err, errdefs.Exists):
				exists++
				if exists == 3 {
					go func() { <-ready; end("0") }()
				}
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won != 1 || exists != 3 {
		t.Errorf("%d won, %d were told", won, exists)
	}
}

// TestKilled: with a launcher that is killed its sandbox dies, and the next start
// finds nothing in its way, whatever was left.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	self, err := os.Executable()
	w.ok(err)
	cmd := exec.Command(self, "launch", w.dir, tool)
	out, err := cmd.StdoutPipe()
	w.ok(err)
	w.ok(cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	c, err := unixsock.Dial(t.Context(), w.socket())
	w.ok(err)
	defer c.Close()
	w.ok(cmd.Process.Kill())
	cmd.Wait()
	var said bytes.Buffer
	w.start(t.Context(), w.config(&said))
	if meta, err := w.place().Load(); err != nil || meta.State != resource.Running {
		t.Errorf("%+v, %v", meta, err)
	}
	if views, err := filepath.Glob(filepath.Join(w.layout.View("coder"), "live-*")); err != nil || len(views) != 1 {
		t.Errorf("%v, %v", views, err)
	}
}

// TestLeftovers: a stale link and a dead socket are replaced.
func TestLeftovers(t *testing.T) {
	w := newWorld(t)
	w.ok(os.MkdirAll(filepath.Dir(w.link()), 0o700))
	w.ok(os.Symlink("/nowhere", w.link()))
	w.warm()
	w.ok(os.MkdirAll(filepath.Dir(w.socket()), 0o700))
	l, err := unixsock.Listen(w.socket(), unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	w.ok(err)
	w.ok(os.Link(w.socket(), w.socket()+"2"))
	l.Close()
	w.ok(os.Rename(w.socket()+"2", w.socket()))
	var said bytes.Buffer
	w.start(t.Context(), w.config(&said))
	if to, err := os.Readlink(w.link()); err != nil || to != w.socket() {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// TestElsewhere: a start with another runtime directory is one of the same
// terminal: it is refused and touches nothing, and takes over what a launcher
// that was killed left there.
func TestElsewhere(t *testing.T) {
	w := newWorld(t)
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	over := w.start(ctx, w.config(&said))
	before := w.listing()
	elsewhere := w.config(&said)
	w.ok(os.Mkdir(filepath.Join(w.dir, "run", "other"), 0o700))
	tools := elsewhere.Tools
	tools.Layout = paths.New(paths.Env{UID: 1, Home: w.dir, RuntimeDir: filepath.Join(w.dir, "run", "other")}, w.layout.Root)
	meta, err := w.place().Load()
	w.ok(err)
	if _, err := Run(t.Context(), elsewhere); !errdefs.Is(err, errdefs.Exists) {
		t.Errorf("%v", err)
	}
	w.ok(os.RemoveAll(filepath.Join(w.dir, "run", "other")))
	if diff := cmp.Diff(before, w.listing()); diff != "" {
		t.Errorf("touched:\n%s", diff)
	}
	now, err := w.place().Load()
	w.ok(err)
	if diff := cmp.Diff(meta, now); diff != "" {
		t.Errorf("touched:\n%s", diff)
	}
	cancel()
	<-over
	// What a killed launcher leaves: a link to a socket at which nobody listens.
	w.ok(os.MkdirAll(filepath.Dir(w.socket()), 0o700))
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: w.socket()})
	w.ok(err)
	stale.SetUnlinkOnClose(false)
	w.ok(stale.Close())
	w.ok(os.Symlink(w.socket(), w.link()))
	w.ok(os.Mkdir(filepath.Join(w.dir, "run", "other"), 0o700))
	w.start(t.Context(), elsewhere)
	if to, err := os.Readlink(w.link()); err != nil || to != tools.Layout.TerminalSocket("coder", "work") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if _, err := os.Lstat(filepath.Dir(w.socket())); err == nil {
		t.Error("the old socket is there")
	}
}

// TestLongPaths: a socket path may be longer than the kernel's addresses.
func TestLongPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a long name ", 12))
	w := newWorldAt(t, dir)
	var said bytes.Buffer
	w.start(t.Context(), w.config(&said))
	c, err := unixsock.Dial(t.Context(), w.link())
	w.ok(err)
	c.Close()
}

// TestForeignPlaces: a directory of the sockets that is not private is refused.
func TestForeignPlaces(t *testing.T) {
	w := newWorld(t)
	w.ok(os.MkdirAll(w.layout.Terminals, 0o700))
	w.ok(os.Chmod(w.layout.Terminals, 0o755))
	var said bytes.Buffer
	if _, err := Run(t.Context(), w.config(&said)); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("%v", err)
	}
}

// TestProtectionIsLost: what the host exchanged while a terminal ran is told at
// its end: the mount that protected it is gone then, and no sandbox can tell.
func TestProtectionIsLost(t *testing.T) {
	w := newWorld(t)
	end := w.ending()
	w.ok(os.Mkdir(w.ws+"/.git", 0o700))
	w.ok(os.Mkdir(w.ws+"/.hg", 0o700))
	var said, logged bytes.Buffer
	cfg := w.config(&said)
	var err error
	cfg.Log, err = log.New(&logged, "warn")
	w.ok(err)
	over := w.start(t.Context(), cfg)
	w.ok(os.Rename(w.ws+"/.git", w.ws+"/old"))
	w.ok(os.Mkdir(w.ws+"/.git", 0o700))
	w.ok(os.Mkdir(w.ws+"/.svn", 0o700))
	end("0")
	if o := <-over; o.err != nil || o.exit != 0 {
		t.Errorf("exit %d, %v", o.exit, o.err)
	}
	got := logged.String()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, w.ws+"/.git\"") || !strings.Contains(got, w.ws+"/.svn\"") {
		t.Errorf("logged:\n%s", got)
	}
}

// TestFrozen: a terminal can be started on a workspace that it can not change.
func TestFrozen(t *testing.T) {
	w := newWorld(t)
	end := w.ending()
	var said bytes.Buffer
	cfg := w.config(&said)
	w.mode("touch")
	cfg.Sandbox.Frozen = true
	over := w.start(t.Context(), cfg)
	end("0")
	if o := <-over; o.err != nil || o.exit != 0 {
		t.Errorf("exit %d, %v, %s", o.exit, o.err, said.String())
	}
	if _, err := os.Lstat(w.ws + "/touched"); err == nil || !strings.Contains(said.String(), "read-only file system") {
		t.Errorf("%v, %s", err, said.String())
	}
}
