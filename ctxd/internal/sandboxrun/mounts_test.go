package sandboxrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// ownMounts is set, to the ctxtool that is there already, in the process of
// these tests that may mount.
const ownMounts = "SANDBOXRUN_TEST_TOOL"

// TestMountsChanged: what is mounted where, and how, is for the next call what it
// is for everybody. It runs in a second process with a mount namespace of its
// own, where every user may mount.
func TestMountsChanged(t *testing.T) {
	if os.Getenv(ownMounts) == "" {
		again := exec.Command(os.Args[0], "-test.run=^TestMountsChanged$", "-test.v")
		again.Env = append(os.Environ(), ownMounts+"="+tool)
		again.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			again.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
			again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
			again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
		}
		out, err := again.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("in a mount namespace: %v", err)
		}
		return
	}
	for _, propagation := range []struct {
		name string
		flag uintptr
	}{{"private", unix.MS_PRIVATE}, {"shared", unix.MS_SHARED}} {
		t.Run(propagation.name, func(t *testing.T) {
			if err := unix.Mount("", "/", "", unix.MS_REC|propagation.flag, ""); err != nil {
				t.Fatal(err)
			}
			mountsChange(t)
		})
	}
}

func mountsChange(t *testing.T) {
	const write = "touch sub/x 2>/dev/null && echo written; ls sub"
	for _, c := range []struct {
		name           string
		before, change func(w *world)
		probe, want    string
		same           bool // whether the call runs in what was prepared
	}{
		{"nothing", nil, nil, write, "written\nx\n", true},
		{"the workspace becomes read-only",
			func(w *world) { w.bind("ws", "ws") },
			func(w *world) { w.remount("ws", unix.MS_RDONLY) }, write, "", false},
		{"the workspace becomes writable",
			func(w *world) { w.bind("ws", "ws"); w.remount("ws", unix.MS_RDONLY) },
			func(w *world) { w.remount("ws", 0) }, write, "written\nx\n", false},
		{"a mount below becomes read-only",
			func(w *world) { w.bind("other", "ws/sub") },
			func(w *world) { w.remount("ws/sub", unix.MS_RDONLY) }, write, "other\n", false},
		{"a mount below becomes writable",
			func(w *world) { w.bind("other", "ws/sub"); w.remount("ws/sub", unix.MS_RDONLY) },
			func(w *world) { w.remount("ws/sub", 0) }, write, "written\nother\nx\n", false},
		{"a mount below comes", nil,
			func(w *world) { w.bind("other", "ws/sub") }, write, "written\nother\nx\n", false},
		{"a mount below goes",
			func(w *world) { w.bind("other", "ws/sub") },
			func(w *world) { w.unmount("ws/sub") }, write, "written\nx\n", false},
		{"a mount below is covered",
			func(w *world) { w.bind("other", "ws/sub") },
			func(w *world) { w.tmpfs("ws/sub", "new") }, write, "written\nnew\nx\n", false},
		{"another file system like it",
			func(w *world) { w.tmpfs("ws/sub", "old") },
			func(w *world) { w.unmount("ws/sub"); w.tmpfs("ws/sub", "new") }, write, "written\nnew\nx\n", false},
		{"a mount in an extra mount", nil,
			func(w *world) { w.bind("other", "data/at") },
			"ls /data/at", "other\n", false},
		{"a mount in the home", nil,
			func(w *world) { w.bind("other", "home/deep") },
			"ls ~/deep", "other\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorldOf(t, asuser.Self())
			t.Cleanup(func() { // before what holds the mounts is removed
				for _, at := range []string{"ws/sub", "data/at", "home/deep", "ws"} {
					for unix.Unmount(filepath.Join(w.dir, at), unix.MNT_DETACH) == nil {
					}
				}
			})
			for _, dir := range []string{"ws/sub", "data", "data/at", "home/deep", "other"} {
				w.mkdir(filepath.Join(w.dir, dir))
			}
			w.write(w.dir+"/other/other", "")
			spec := func(script string) sandbox.Spec {
				s := w.spec("/bin/sh", "-c", script)
				s.Mounts = mount.Table{{Source: w.dir + "/data", Target: "/data", ReadOnly: true}}
				return s
			}
			if c.before != nil {
				c.before(w)
			}
			was := w.prepared(spec(""))
			if c.change != nil {
				c.change(w)
			}
			id, out, err := w.first(spec(c.probe))
			if err != nil || out != c.want {
				t.Errorf("%v, output %q, want %q", err, out, c.want)
			}
			if (id == was) != c.same {
				t.Errorf("in %v, prepared was %v", id, was)
			}
			gone(t, was)
			if next := w.l.spare(); next == nil {
				t.Error("nothing is prepared for the call after")
			}
		})
	}
}

func (w *world) bind(from, at string) { w.mount(filepath.Join(w.dir, from), at, "", unix.MS_BIND) }

func (w *world) remount(at string, flags uintptr) {
	w.mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|flags)
}

// tmpfs mounts one that holds a file.
func (w *world) tmpfs(at, file string) {
	w.mount("tmpfs", at, "tmpfs", 0)
	w.write(filepath.Join(w.dir, at, file), "")
}

func (w *world) mount(from, at, kind string, flags uintptr) {
	w.t.Helper()
	if err := unix.Mount(from, filepath.Join(w.dir, at), kind, flags, ""); err != nil {
		w.t.Fatalf("mount at %s: %v", at, err)
	}
}

func (w *world) unmount(at string) {
	w.t.Helper()
	if err := unix.Unmount(filepath.Join(w.dir, at), 0); err != nil {
		w.t.Fatalf("unmount %s: %v", at, err)
	}
}
