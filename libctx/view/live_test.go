package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func (w *world) live(a *Agent) *Live {
	w.Helper()
	v, err := a.PrepareLive(w.Layout, false)
	w.ok(err)
	w.Cleanup(v.Release)
	return v
}

// same fails unless a live view holds what a view of the agent holds now.
func (w *world) same(v *Live, a *Agent) {
	w.Helper()
	p, err := a.Prepare(w.Layout, false)
	w.ok(err)
	defer p.Release()
	for _, part := range follows {
		want, got := listing(w, filepath.Join(p.Dir, part)), listing(w, filepath.Join(v.Dir, part))
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("%s: %s", part, diff)
		}
		for rel := range want {
			x, err1 := os.Stat(filepath.Join(p.Dir, part, rel))
			y, err2 := os.Stat(filepath.Join(v.Dir, part, rel))
			if err1 != nil || err2 != nil || x.Mode().IsRegular() && !os.SameFile(x, y) {
				w.Errorf("%s/%s: is another file (%v, %v)", part, rel, err1, err2)
			}
		}
	}
}

// TestLive: a live view begins as any other, and its tools follow the tree:
// granted, revoked, changed, replaced; nothing else in it is touched.
func TestLive(t *testing.T) {
	w := newWorld(t)
	own := "home/" + uid() + "/tool"
	w.tool("tool", "fs.read", map[string]string{"effect": "workspace_read\n"})
	w.tool("tool", "fs.list", map[string]string{"effect": "workspace_read\n"})
	a := w.load()
	p, err := a.Prepare(w.Layout, false)
	w.ok(err)
	v := w.live(a)
	if diff := cmp.Diff(listing(t, p.Dir), listing(t, v.Dir)); diff != "" {
		t.Error(diff)
	}
	p.Release()
	if filepath.Dir(v.Dir) != filepath.Dir(p.Dir) || v.Dir == p.Dir {
		t.Errorf("%s beside %s", v.Dir, p.Dir)
	}
	// Mount points, the files a sandbox has something mounted on, stay.
	kept := map[string]uint64{}
	for _, rel := range []string{".", "bin/ctxtool", "bin/tsh", "bin/ctxterm", "agent/coder.d", "agent/coder.d/policy", "status"} {
		kept[rel] = inode(t, filepath.Join(v.Dir, rel))
	}
	policy := w.Read("agent/coder.d/policy")
	for name, change := range map[string]func(){
		"nothing": func() {},
		"granted": func() {
			w.control("coder", map[string]string{"policy": policy + "allow coder_t tool:fs.list execute\n"})
		},
		"revoked":   func() { w.control("coder", map[string]string{"policy": "allow coder_t tool:tsh execute\n"}) },
		"perm":      func() { w.control("coder", map[string]string{"perm": "---\n"}) },
		"new":       func() { w.tool(own, "calc", map[string]string{"effect": "pure\n"}) },
		"removed":   func() { w.ok(os.RemoveAll(w.path("tool/fs.read"))) },
		"rewritten": func() { w.write("tool/fs.read", "#!/bin/sh\necho other\n", 0o755) },
		"described": func() { w.write("tool/fs.read.d/description", "reads\n", 0o644) },
		"path":      func() { w.control("coder", map[string]string{"path": "/ctx/" + own + "\n"}) },
	} {
		change()
		w.ok(v.Follow(w.load()))
		w.same(v, w.load())
		for rel, ino := range kept {
			if now := inode(t, filepath.Join(v.Dir, rel)); now != ino {
				t.Errorf("%s: %s was replaced", name, rel)
			}
		}
	}
	w.ok(v.Clear())
	for _, part := range follows {
		if all := listing(t, filepath.Join(v.Dir, part)); len(all) != 0 {
			t.Errorf("after all is cleared: %v", all)
		}
	}
	w.ok(v.Follow(w.load()))
	w.same(v, w.load())
	v.Release()
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(v.Dir), "live-*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.Layout.Locks, "view.coder.live-*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Read reads a file of the tree.
func (w *world) Read(rel string) string {
	w.Helper()
	text, err := os.ReadFile(w.path(rel))
	w.ok(err)
	return string(text)
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// TestLiveLeftovers: what a killed process left goes, what a living one uses
// stays.
func TestLiveLeftovers(t *testing.T) {
	w := newWorld(t)
	v := w.live(w.load())
	dead := filepath.Join(filepath.Dir(v.Dir), "live-0123456789abcdef")
	w.ok(os.CopyFS(dead, os.DirFS(v.Dir)))
	base, err := w.load().base(w.Layout)
	w.ok(err)
	defer base.Close()
	sweep(w.Layout, "coder", base, "")
	if _, err := os.Lstat(dead); err == nil {
		t.Error("a dead one is still there")
	}
	if _, err := os.Lstat(v.Dir + "/bin/tsh"); err != nil {
		t.Error(err)
	}
}

// TestLiveRefused: a view of an agent whose files are refused can not be had,
// and leaves nothing.
func TestLiveRefused(t *testing.T) {
	w := newWorld(t)
	a := w.load()
	v := w.live(a)
	w.ok(os.Chmod(w.path("agent/coder.d"), 0o777))
	if err := v.Follow(a); !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), "coder.d") {
		t.Errorf("%v", err)
	}
	if _, err := a.PrepareLive(w.Layout, false); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("%v", err)
	}
}
