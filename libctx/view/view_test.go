package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// stranger and friend are users that are not the test's own; being them needs
// root.
const (
	stranger = 60001
	friend   = 60002
)

func isRoot() bool { return os.Geteuid() == 0 }

// world is a tree for one test.
type world struct {
	testing.TB
	paths.Layout
}

// newWorld makes a tree with the agent coder, which may read and run calc. It
// belongs to whoever runs the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	top := t.TempDir()
	// Other users must be able to walk in.
	for dir := top; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t, paths.Layout{
		Root: filepath.Join(top, "tree"), Views: filepath.Join(top, "tree/.view"),
		Locks: filepath.Join(top, "lock"), Runtime: filepath.Join(top, "run"), System: isRoot(),
	}}
	w.write("status", "ok\n", 0o644)
	w.control("coder", map[string]string{
		"owner": uid() + "\n", "abi": libctx.ABI + "\n", "perm": "r--\n",
		"policy":    "allow coder_t tool:tsh execute\nallow coder_t tool:calc execute\nallow coder_t tool:fs.read execute\n",
		"system.md": "You code.", "log": "", "status": "idle\n",
	})
	w.write("agent/coder", "#!/bin/sh\n", 0o755)
	w.tool("tool", "calc", map[string]string{"schema": `{"type":"object"}` + "\n", "effect": "pure\n", "mode": "json\n", "description": "adds\n"})
	return w
}

func uid() string { return uidString(uint32(os.Geteuid())) }

func (w *world) path(rel string) string { return filepath.Join(w.Root, rel) }

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// dir makes a directory and those above it, readable whatever the umask.
func (w *world) dir(rel string) {
	w.Helper()
	if _, err := os.Stat(w.path(rel)); err == nil {
		return
	}
	if rel != "." {
		w.dir(filepath.Dir(rel))
	}
	w.ok(os.Mkdir(w.path(rel), 0o700))
	w.ok(os.Chmod(w.path(rel), 0o755))
}

// write makes a file with an exact mode, and the directories above it.
func (w *world) write(rel, text string, perm os.FileMode) {
	w.Helper()
	w.dir(filepath.Dir(rel))
	w.ok(os.WriteFile(w.path(rel), []byte(text), 0o600))
	w.ok(os.Chmod(w.path(rel), perm))
}

func (w *world) control(agent string, files map[string]string) {
	w.Helper()
	for name, text := range files {
		w.write("agent/"+agent+".d/"+name, text, 0o644)
	}
}

func (w *world) tool(dir, name string, files map[string]string) {
	w.Helper()
	w.write(dir+"/"+name, "#!/bin/sh\necho "+name+"\n", 0o755)
	for file, text := range files {
		w.write(dir+"/"+name+".d/"+file, text, 0o644)
	}
}

// give changes the owner of a file or a whole directory; only root can.
func (w *world) give(rel string, uid int) {
	w.Helper()
	w.ok(filepath.Walk(w.path(rel), func(p string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, uid)
	}))
}

func (w *world) load() *Agent {
	w.Helper()
	a, err := Load(w.Layout, "coder")
	w.ok(err)
	return a
}

// refuses wants Load to fail with a kind and a message that names something.
func (w *world) refuses(kind errdefs.Kind, names string) {
	w.Helper()
	_, err := Load(w.Layout, "coder")
	switch {
	case !errdefs.Is(err, kind):
		w.Errorf("Load: %v (%s), want %s", err, errdefs.KindOf(err), kind)
	case !strings.Contains(err.Error(), names):
		w.Errorf("Load: %q does not name %q", err, names)
	case strings.Contains(err.Error(), "\n"):
		w.Errorf("Load: %q is more than a line", err)
	}
}

func (w *world) lookup(a *Agent, name libctx.Tool) *Tool {
	w.Helper()
	t, err := a.Lookup(w.Layout, name)
	w.ok(err)
	w.Cleanup(func() { t.Close() })
	return t
}

// decide is the whole way of a call through tsh.
func (w *world) decide(a *Agent, name libctx.Tool) admit.Decision {
	w.Helper()
	call := admit.Call{Name: admit.Shell, Arguments: []byte(`{"args":["` + string(name) + `"]}`), Direct: true}
	return admit.Decide(a.Facts(), w.lookup(a, name).Tool, call)
}

func (w *world) prepare(a *Agent, checked ...*Tool) *Prepared {
	w.Helper()
	p, err := a.Prepare(w.Layout, true, checked...)
	w.ok(err)
	w.Cleanup(p.Release)
	return p
}

// as runs fn as another user, whose files the test makes.
func (w *world) as(uid uint32, fn func() error) {
	w.Helper()
	w.ok(asuser.Identity{UID: uid, GID: uid}.Do(fn))
}

func (w *world) root() *atomicfile.Dir {
	d, err := atomicfile.OpenDir(w.Root)
	if err != nil {
		w.Fatal(err)
	}
	return d
}
