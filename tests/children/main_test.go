// Package children looks at what each kind of process that the suite starts has
// of the one that started it: descriptors, environment, privileges, rights to new
// files. Servers are looked at from outside, what runs in sandboxes looks at
// itself (docs/security.md).
package children

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) { world.Main(m) }

// users runs a test in a world of the present user and, where that is root's, in
// one of another user too.
func users(t *testing.T, test func(t *testing.T, w *careless)) {
	all := []int{os.Geteuid()}
	if all[0] == 0 {
		all = append(all, 60001)
	}
	for _, uid := range all {
		t.Run(strconv.Itoa(uid), func(t *testing.T) { test(t, newCareless(t, world.NewFor(t, uid))) })
	}
}

// careless is a world whose activator was started by somebody careless: with
// descriptors that are open for every child, a umask of 0, and a secret in the
// environment.
type careless struct {
	*world.World
	t     *testing.T
	serve int        // pid of the activator
	leaks []*os.File // what was left open
}

// newCareless makes the agents that are used, and starts the activator.
func newCareless(t *testing.T, w *world.World) *careless {
	t.Helper()
	c := &careless{World: w, t: t}
	w.Puppet("a", "shell.exec")
	w.MustCtx("agent", "new", "m", "--model", "debug/echo")
	if err := os.MkdirAll(w.Layout.Runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for dir := w.Layout.Runtime; strings.HasPrefix(dir, w.Dir+"/"); dir = filepath.Dir(dir) {
			if err := os.Chown(dir, w.UID, w.UID); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := w.Command("ctxd")
	cmd.Path = "/bin/sh"
	cmd.Args = []string{"sh", "-c", `umask 000; exec "$0" --root "$CTX_ROOT" serve`, filepath.Join(w.Bin, "ctxd")}
	leak := func(f *os.File, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		c.leaks = append(c.leaks, f)
	}
	leak(os.Open(w.Dir))
	leak(os.Create(filepath.Join(w.Dir, "leak")))
	r, end, err := os.Pipe()
	leak(r, err)
	defer end.Close()
	leak(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))
	log, err := os.Create(filepath.Join(w.Dir, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, c.leaks
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s", w.Read(log.Name()))
		}
	})
	c.serve = cmd.Process.Pid
	for _, agent := range []string{"a", "m"} {
		w.AwaitExists(filepath.Join(w.Root, "agent", agent+".sock"))
	}
	return c
}

// process is the one process of a program of this world whose command line has
// these words.
func (c *careless) process(words ...string) int {
	c.t.Helper()
	var found []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || !bytes.HasPrefix(line, []byte(c.Bin+"/")) || !bytes.Contains(line, []byte(c.Root)) {
			continue
		}
		all := true
		for _, w := range words {
			all = all && bytes.Contains(line, []byte(w+"\x00"))
		}
		if all {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		c.t.Fatalf("processes with %q: %v", words, found)
	}
	return found[0]
}

// leaked fails the test if a process has something open that was left open.
func (c *careless) leaked(who string, pid int) {
	c.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return // closed to its own user, or gone
	}
	for _, e := range entries {
		has, err := os.Stat(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		if err != nil {
			continue
		}
		for _, f := range c.leaks {
			if left, err := f.Stat(); err != nil || os.SameFile(has, left) {
				c.t.Errorf("%s has %s open: %v", who, f.Name(), err)
			}
		}
	}
}
