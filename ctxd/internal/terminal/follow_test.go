package terminal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cortexfs.org/libctx/tree"
	"github.com/fsnotify/fsnotify"
)

// shown waits until a tool is in the directory of a running terminal's tools, or
// is not.
func shown(t *testing.T, dir, tool string, want bool) {
	t.Helper()
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if err := watch.Add(dir); err != nil {
		t.Fatal(err)
	}
	patience := time.NewTimer(time.Minute) // only a test that fails waits for it
	defer patience.Stop()
	for {
		if _, err := os.Lstat(filepath.Join(dir, tool)); (err == nil) == want {
			return
		}
		select {
		case <-watch.Events:
		case err := <-watch.Errors:
			t.Fatal(err)
		case <-patience.C:
			t.Fatalf("%s: shown is not %v", tool, want)
		}
	}
}

// TestFollow: what is granted appears in a running terminal and what is revoked
// vanishes, by whichever file; while the agent's files are refused there is
// nothing.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	over := w.start(ctx, w.config(&said))
	found, err := filepath.Glob(filepath.Join(w.layout.View("coder"), "live-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	tools := filepath.Join(found[0], "tool")
	set := func(file, text string) {
		t.Helper()
		w.ok(tree.SetControl(w.layout, "coder", file, []byte(text)))
	}
	const shell, reads = "allow coder_t tool:tsh execute\n", "allow coder_t tool:fs.read execute\n"
	control, all := w.layout.Control("coder"), w.layout.Tools()
	shown(t, tools, "fs.read", false)
	set("perm", "r--\n")
	set("policy", shell+reads)
	shown(t, tools, "fs.read", true)
	set("perm", "---\n")
	shown(t, tools, "fs.read", false)
	set("perm", "rwx\n")
	shown(t, tools, "fs.read", true)

	w.ok(os.Chmod(control, 0o777))
	shown(t, tools, "tsh", false)
	shown(t, tools, "fs.read", false)
	w.ok(os.Chmod(control, 0o755))
	shown(t, tools, "fs.read", true)

	w.ok(os.WriteFile(filepath.Join(all, "fs.read.d/policy"), nil, 0o644)) // denies everybody
	shown(t, tools, "fs.read", false)
	w.ok(os.Remove(filepath.Join(all, "fs.read.d/policy")))
	shown(t, tools, "fs.read", true)

	w.ok(os.Rename(all, all+".old")) // everything at once, and a directory that is another one
	shown(t, tools, "tsh", false)
	w.ok(os.CopyFS(all, os.DirFS(all+".old")))
	shown(t, tools, "fs.read", true)
	w.ok(os.WriteFile(filepath.Join(all, "fs.read.d/policy"), nil, 0o644))
	shown(t, tools, "fs.read", false)
	w.ok(os.Remove(filepath.Join(all, "fs.read.d/policy")))
	shown(t, tools, "fs.read", true)
	w.ok(os.Remove(filepath.Join(all, "fs.read")))
	shown(t, tools, "fs.read", false)

	w.ok(os.RemoveAll(control))
	shown(t, tools, "tsh", false)

	cancel()
	if o := <-over; o.err != nil {
		t.Error(o.err)
	}
	if _, err := os.Lstat(found[0]); err == nil {
		t.Error("the view is still there")
	}
}
