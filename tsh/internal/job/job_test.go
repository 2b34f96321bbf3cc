package job

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// rig is a table with jobs that have no terminal.
type rig struct {
	*Table
	t    *testing.T
	null *os.File
}

func newRig(t *testing.T) *rig {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{NewTable(), t, null}
	t.Cleanup(func() {
		for _, j := range r.list {
			j.signal(unix.SIGKILL)
		}
		for len(r.list) > 0 {
			r.next()
		}
		r.Close()
		null.Close()
	})
	return r
}

func (r *rig) start(script string) *Job {
	r.t.Helper()
	p := Program{Path: "/bin/sh", Argv: []string{"sh", "-c", script}}
	j, err := r.Background(p, script, [3]*os.File{r.null, r.null, r.null})
	if err != nil {
		r.t.Fatal(err)
	}
	return j
}

// next collects one change.
func (r *rig) next() *Job {
	r.t.Helper()
	select {
	case j := <-r.Changes():
		r.Collect(j)
		return j
	case <-time.After(time.Minute):
		r.t.Fatal("nothing happens")
	}
	return nil
}

// becomes waits until a job has a state.
func (r *rig) becomes(j *Job, s State, by syscall.Signal, code int) {
	r.t.Helper()
	for j.State != s {
		if k := r.next(); k != j && k.State != Running {
			r.t.Fatalf("%d: %v, of %d is waited for", k.N, k.State, j.N)
		}
	}
	if j.By != by || j.Code != code {
		r.t.Errorf("job %d: by %v, code %d, not %v, %d", j.N, j.By, j.Code, by, code)
	}
}

// A job is told of when it stops, goes on and ends, and is gone then.
func TestLife(t *testing.T) {
	r := newRig(t)
	j := r.start("kill -s STOP $$; exit 3")
	r.becomes(j, Stopped, unix.SIGSTOP, 0)
	if r.Current() != 1 || len(r.Jobs()) != 1 {
		t.Errorf("%d %v", r.Current(), r.Jobs())
	}
	r.Resume(j)
	r.becomes(j, Ended, 0, 3)
	if r.Current() != 0 || len(r.Jobs()) != 0 {
		t.Errorf("%d %v", r.Current(), r.Jobs())
	}
	// What a job is told when it has ended reaches nobody.
	r.Kill(j, unix.SIGKILL)
}

func TestSignals(t *testing.T) {
	r := newRig(t)
	j := r.start("kill -s STOP $$; exit 3")
	r.becomes(j, Stopped, unix.SIGSTOP, 0)
	r.Kill(j, unix.SIGTERM)
	r.becomes(j, Ended, unix.SIGTERM, 143)
	// The whole group hears it.
	j = r.start("trap '' TERM; sleep 1000; exit 5")
	r.Kill(j, unix.SIGKILL)
	r.becomes(j, Ended, unix.SIGKILL, 137)
	// So does one that is stopped, and the group of one that ended is not touched.
	a, b := r.start("kill -s STOP $$"), r.start("sleep 1000")
	r.becomes(a, Stopped, unix.SIGSTOP, 0)
	r.HangUp()
	for a.State != Ended || b.State != Ended {
		r.next()
	}
	if a.By != unix.SIGHUP || b.By != unix.SIGHUP || b.Code != 129 {
		t.Errorf("%+v %+v", a, b)
	}
}

func TestNumbers(t *testing.T) {
	r := newRig(t)
	a, b, c := r.start("sleep 1000"), r.start("kill -s STOP $$; sleep 1000"), r.start("sleep 1000")
	r.becomes(b, Stopped, unix.SIGSTOP, 0)
	for word, want := range map[string]*Job{"": b, "1": a, "%1": a, "2": b, "%3": c} {
		if got, err := r.Find(word); err != nil || got != want {
			t.Errorf("%q: %+v, %v", word, got, err)
		}
	}
	for word, kind := range map[string]errdefs.Kind{
		"4": errdefs.NotFound, "%0": errdefs.NotFound, "x": errdefs.Invalid, "%": errdefs.Invalid, "%%": errdefs.Invalid, "-1": errdefs.Invalid,
		"99999999": errdefs.Invalid,
	} {
		if got, err := r.Find(word); !errdefs.Is(err, kind) {
			t.Errorf("%q: %+v, %v", word, got, err)
		}
	}
	r.Resume(b)
	if r.Current() != 2 {
		t.Errorf("after bg: %d", r.Current())
	}
	r.Kill(a, unix.SIGKILL)
	r.becomes(a, Ended, unix.SIGKILL, 137)
	if d := r.start("sleep 1000"); d.N != 4 {
		t.Errorf("a new one is %d", d.N)
	}
}

func TestBound(t *testing.T) {
	r := newRig(t)
	for range libctx.MaxJobs {
		r.start("sleep 1000")
	}
	if _, err := r.Background(Program{Path: "/bin/sh", Argv: []string{"sh"}}, "", [3]*os.File{r.null, r.null, r.null}); !errdefs.Is(err, errdefs.Busy) {
		t.Error(err)
	}
}

// What does not start says why, by the kind that the exit code is made of.
func TestNotStarted(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		kind errdefs.Kind
	}{
		"plain": {"#!/bin/sh\n", 0o644, errdefs.Denied},
		"alien": {"#!/none/at/all\n", 0o755, errdefs.NotFound},
		"none":  {"", 0, errdefs.NotFound},
	} {
		path := filepath.Join(dir, name)
		if c.text != "" {
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		r := newRig(t)
		files := [3]*os.File{r.null, r.null, r.null}
		if _, err := Wait(Program{Path: path, Argv: []string{name}}, files); !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Background(Program{Path: path, Argv: []string{name}}, "", files); !errdefs.Is(err, c.kind) || len(r.list) > 0 {
			t.Errorf("%s: %v", name, err)
		}
		if err := Become(Program{Path: path, Argv: []string{name}}); !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for script, want := range map[string]int{"exit 7": 7, "kill -s KILL $$": 137} {
		r := newRig(t)
		code, err := Wait(Program{Path: "/bin/sh", Argv: []string{"sh", "-c", script}}, [3]*os.File{r.null, r.null, r.null})
		if code != want || err != nil {
			t.Errorf("%s: %d %v", script, code, err)
		}
	}
}
