package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// layout is one whose terminals are in a directory of the test's own.
func layout(t *testing.T) paths.Layout {
	t.Helper()
	dir := t.TempDir()
	return paths.New(paths.Env{UID: os.Geteuid(), Home: dir, DataHome: filepath.Join(dir, "data"), RuntimeDir: dir}, filepath.Join(dir, "tree"))
}

func directly(t *testing.T) (Supervisor, paths.Layout) {
	t.Helper()
	l := layout(t)
	s, err := New(t.Context(), Direct, l, uint32(os.Geteuid()))
	if err != nil || s.Name() != Direct {
		t.Fatal(s, err)
	}
	return s, l
}

// start starts a command of the shell for session s of agent a; it ends with the
// test.
func start(t *testing.T, s Supervisor, l paths.Layout, script string, env ...string) Instance {
	t.Helper()
	i, err := s.Start(t.Context(), Spec{
		Unit: Unit(l, "a", "s"), Argv: []string{"/bin/sh", "-c", script}, Env: env, Log: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h, err := hold(i); err == nil {
			h.Signal(syscall.SIGKILL)
			h.Wait(context.Background())
			h.Reap()
			h.Close()
		}
	})
	return i
}

// claim writes the lock of a launcher.
func claim(t *testing.T, l paths.Layout, text string) {
	t.Helper()
	lock := l.TerminalLock("a", "s")
	if err := os.MkdirAll(filepath.Dir(lock), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An instance is found by the lock of its launcher, once, and is gone when it
// was stopped.
func TestDirectLife(t *testing.T) {
	s, l := directly(t)
	if all, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	i := start(t, s, l, "exec sleep infinity")
	if _, err := s.Find(t.Context(), i.Unit); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("before its lock: %v", err)
	}
	claim(t, l, procid.ID{PID: i.PID, Start: i.Start}.Line(i.Boot))
	found, err := s.Find(t.Context(), i.Unit)
	if err != nil || found != i {
		t.Errorf("found %+v, %v; started %+v", found, err, i)
	}
	if all, err := s.List(t.Context()); err != nil || !slices.Equal(all, []Instance{i}) {
		t.Errorf("listed %+v, %v", all, err)
	}
	_, err = s.Start(t.Context(), Spec{Unit: i.Unit, Argv: []string{"/bin/true"}, Log: filepath.Join(t.TempDir(), "log")})
	if !errdefs.Is(err, errdefs.Exists) {
		t.Errorf("again: %v", err)
	}
	if err := Prove(t.Context(), i); err != nil {
		t.Error(err)
	}
	if err := s.Stop(t.Context(), i); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"proof": Prove(t.Context(), i), "stop": s.Stop(t.Context(), i),
		"find": func() error { _, err := s.Find(t.Context(), i.Unit); return err }(),
	} {
		if !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("%s of what is gone: %v", what, err)
		}
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// The program has its environment, its log and nothing else of ours.
func TestDirectProgram(t *testing.T) {
	s, l := directly(t)
	t.Setenv("SECRET", "x")
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // as a parent could have left it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	i, err := s.Start(t.Context(), Spec{
		Unit: Unit(l, "a", "s"), Env: []string{"A=b"}, Log: log,
		Argv: []string{"/bin/sh", "-c", `tr '\0' ' ' </proc/$$/environ; echo; ls -m /proc/$$/fd; readlink /proc/$$/fd/0 /proc/$$/cwd; echo last >&2; exit`},
	})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := unix.Getsid(i.PID); err == nil && id != i.PID { // it may have ended
		t.Errorf("its session is %d", id)
	}
	h, err := procid.Open(i.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Reap()
	text, err := os.ReadFile(log)
	if want := "before\nA=b \n0, 1, 2\n/dev/null\n/\nlast\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
	if st, err := os.Stat(log); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the log is %v, %v", st.Mode(), err)
	}
	os.Remove(log)
	if err := os.Symlink("/etc/passwd", log); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), Spec{Unit: i.Unit, Argv: []string{"/bin/true"}, Log: log}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("a link for a log: %v", err)
	}
	os.Remove(log)
	if _, err := s.Start(t.Context(), Spec{Unit: i.Unit, Argv: []string{"/no/such"}, Log: log}); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// A receipt that does not fit touches nothing.
func TestDirectStale(t *testing.T) {
	s, l := directly(t)
	i := start(t, s, l, "exec sleep infinity")
	for name, c := range map[string]struct {
		change func(*Instance)
		stale  bool
		kind   errdefs.Kind
	}{
		"another start time":   {func(i *Instance) { i.Start++ }, true, errdefs.Invalid},
		"another boot":         {func(i *Instance) { i.Boot = "x" }, false, errdefs.NotFound},
		"another user":         {func(i *Instance) { i.UID++ }, true, errdefs.Invalid},
		"another unit":         {func(i *Instance) { i.Unit = Unit(l, "a", "t") }, true, errdefs.Invalid},
		"another invocation":   {func(i *Instance) { i.Invocation = strings.Repeat("0", 32) }, true, errdefs.Invalid},
		"another process":      {func(i *Instance) { i.PID = os.Getpid() }, true, errdefs.Invalid},
		"no process":           {func(i *Instance) { i.PID = 0 }, false, errdefs.Invalid},
		"a group of processes": {func(i *Instance) { i.PID = -i.PID }, false, errdefs.Invalid},
		"no supervisor":        {func(i *Instance) { i.Supervisor = "" }, false, errdefs.Invalid},
		"a unit of systemd":    {func(i *Instance) { i.Supervisor = Systemd }, true, errdefs.Invalid},
	} {
		other := i
		c.change(&other)
		for _, err := range []error{Prove(t.Context(), other), s.Stop(t.Context(), other)} {
			if !errdefs.Is(err, c.kind) || errors.Is(err, ErrStale) != c.stale {
				t.Errorf("%s: %v (%s)", name, err, errdefs.KindOf(err))
			}
		}
	}
	if err := Prove(t.Context(), i); err != nil {
		t.Error(err)
	}
}

// A lock that names no living launcher says nothing.
func TestDirectLocks(t *testing.T) {
	s, l := directly(t)
	me, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	boot, err := procid.Boot()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "torn": strings.TrimSuffix(me.Line(boot), "\n"), "of another boot": me.Line("x"),
		"of a pid used again": procid.ID{PID: me.PID, Start: me.Start + 1}.Line(boot),
		"of nobody":           procid.ID{PID: 1 << 22, Start: 1}.Line(boot),
	} {
		claim(t, l, text)
		if i, err := s.Find(t.Context(), Unit(l, "a", "s")); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
	claim(t, l, me.Line(boot))
	if i, err := s.Find(t.Context(), Unit(l, "a", "s")); err != nil || i.PID != me.PID {
		t.Errorf("%+v, %v", i, err)
	}
	if _, err := s.Find(t.Context(), "ssh.service"); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("no terminal: %v", err)
	}
}

// What does not end when it is asked to is ended.
func TestEnd(t *testing.T) {
	s, l := directly(t)
	for name, script := range map[string]string{"stubborn": `trap "" TERM; echo ready; while :; do read x </dev/zero; done`, "stopped": "kill -STOP $$"} {
		i := start(t, s, l, script)
		h, err := hold(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(t.Context(), h, time.Millisecond); errdefs.Is(err, errdefs.Timeout) {
			// A loaded machine has not got round to the kill; it is on its way.
			err = h.Wait(t.Context())
			h.Reap()
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !h.Ended() {
			t.Errorf("%s goes on", name)
		}
		h.Close()
	}
}

func TestNew(t *testing.T) {
	l := layout(t)
	if _, err := New(t.Context(), "upstart", l, 0); !errdefs.Is(err, errdefs.Invalid) {
		t.Error(err)
	}
	const nobody = 4242424 // has no manager
	if _, err := New(t.Context(), Systemd, l, nobody); !errdefs.Is(err, errdefs.Unavailable) {
		t.Error(err)
	}
	s, err := New(t.Context(), Auto, l, nobody)
	if err != nil || s.Name() != Direct {
		t.Error(s, err)
	}
	if Linger(nobody) {
		t.Error("nobody lingers")
	}
}
