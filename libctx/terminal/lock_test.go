package terminal

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/rundir"
)

// killedLaunch is what a launcher leaves that was killed while its terminal ran.
func killedLaunch(t *testing.T) (Place, Launch) {
	t.Helper()
	p := place(t, "s")
	if err := rundir.Ensure(p.Layout); err != nil {
		t.Fatal(err)
	}
	k, err := p.Own()
	if err != nil {
		t.Fatal(err)
	}
	create(t, p)
	if err := p.SetState(Running, nil); err != nil {
		t.Fatal(err)
	}
	l := Launch{Socket: Socket{Path: p.Layout.TerminalSocket(p.Agent, p.Session)}}
	sock, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: l.Socket.Path})
	if err != nil {
		t.Fatal(err)
	}
	sock.SetUnlinkOnClose(false)
	sock.Close()
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.Socket.Path), ".main.sock.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(l.Socket.Path, p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session)); err != nil {
		t.Fatal(err)
	}
	me, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if l.Boot, err = procid.Boot(); err != nil {
		t.Fatal(err)
	}
	l.PID, l.Start = me.PID, me.Start
	k.f.Close() // as its death does
	return p, l
}

// traces are the files of a terminal that are there only while it lives.
func (p Place) traces() (there []string) {
	for _, path := range []string{
		p.Layout.TerminalLock(p.Agent, p.Session), p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session),
		p.Layout.TerminalSocket(p.Agent, p.Session), p.Layout.TerminalDir(p.Agent, p.Session),
	} {
		if _, err := os.Lstat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

func TestClear(t *testing.T) {
	p, l := killedLaunch(t)
	if ours, err := p.Clear(l); !ours || err != nil {
		t.Errorf("%v, %v", ours, err)
	}
	if left := p.traces(); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	m, err := p.Load()
	if err != nil || m.State != Exited || m.ExitCode == nil || *m.ExitCode != killed {
		t.Errorf("%+v, %v", m, err)
	}
	if ours, err := p.Clear(l); ours || err != nil {
		t.Errorf("a second time: %v, %v", ours, err)
	}
	if k, err := p.Own(); err != nil {
		t.Errorf("the next start: %v", err)
	} else {
		k.Release()
	}
}

// One that had come no further than its lock has no resource.
func TestClearOfABeginning(t *testing.T) {
	p, l := killedLaunch(t)
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	if ours, err := p.Clear(l); !ours || err != nil {
		t.Errorf("%v, %v", ours, err)
	}
	if _, err := p.Load(); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("made a resource: %v", err)
	}
}

// What is another launch's stays, in every part.
func TestClearOfAnother(t *testing.T) {
	for name, change := range map[string]func(p Place, l *Launch){
		"pid":   func(_ Place, l *Launch) { l.PID++ },
		"start": func(_ Place, l *Launch) { l.Start++ },
		"boot":  func(_ Place, l *Launch) { l.Boot = "another" },
		"a lock that is held": func(p Place, l *Launch) {
			f, err := p.take(0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
		},
		"an empty lock": func(p Place, l *Launch) {
			if err := os.Truncate(p.Layout.TerminalLock(p.Agent, p.Session), 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		p, l := killedLaunch(t)
		before := p.traces()
		change(p, &l)
		if ours, err := p.Clear(l); ours || err != nil {
			t.Errorf("%s: %v, %v", name, ours, err)
		}
		if now := p.traces(); len(now) != len(before) || len(now) != 4 {
			t.Errorf("%s: %q is left of %q", name, now, before)
		}
		if m, err := p.Load(); err != nil || m.State != Running {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// A link that leads elsewhere, and what is no socket, are nobody's to remove.
func TestClearKeepsStrangers(t *testing.T) {
	p, l := killedLaunch(t)
	link := p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session)
	for _, err := range []error{os.Remove(link), os.Symlink("/elsewhere", link), os.Remove(l.Socket.Path), os.WriteFile(l.Socket.Path, []byte("x"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if ours, err := p.Clear(l); !ours || err != nil {
		t.Errorf("%v, %v", ours, err)
	}
	for _, path := range []string{link, l.Socket.Path} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(p.Layout.TerminalLock(p.Agent, p.Session)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock: %v", err)
	}
}

func TestIsSocket(t *testing.T) {
	for _, env := range []paths.Env{
		{UID: 1000, Home: "/home/u", RuntimeDir: "/run/user/1000"}, {UID: 1000, Home: "/home/u"}, {UID: 0, Home: "/root"},
	} {
		for _, root := range []string{"/ctx", "/home/u/tree"} {
			l := paths.New(env, root)
			own := l.TerminalSocket("coder", "default")
			if !IsSocket(own, "coder", "default") {
				t.Errorf("%s is none", own)
			}
			for _, other := range []string{
				l.TerminalSocket("coder", "other"), l.TerminalSocket("xcoder", "default"), own + "x", own + "/", own[1:], "/x/.." + own,
				l.TerminalLink(1000, "coder", "default"), filepath.Dir(own), "",
			} {
				if IsSocket(other, "coder", "default") {
					t.Errorf("%q is one", other)
				}
			}
		}
	}
}
