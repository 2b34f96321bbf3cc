package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/ctx/internal/spawn"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// trialDeadline is how long a trial may take.
const trialDeadline = 10 * time.Second

// optional are programs that only some agents need, and what is not to be had
// without them.
var optional = []struct{ name, without string }{
	{"ctxmodel", "agents that a model drives do not work"},
	{"ctxterm", "agents have no terminals"},
	{"tsh", "agents have no terminals, and no tools beside their native ones"},
}

// checkPrograms looks for the programs that run agents and tools.
func checkPrograms(_ context.Context, from *caller.Caller) []Finding {
	var all []Finding
	for _, name := range []string{"ctxd", "ctxtool"} {
		path, err := spawn.Find(from.Config.Exe, from.Layout, name)
		if err != nil {
			all = append(all, bad(name, err, "")...)
			continue
		}
		all = append(all, good(name, path)...)
	}
	for _, p := range optional {
		if _, err := spawn.Find(from.Config.Exe, from.Layout, p.name); err != nil {
			all = append(all, Finding{p.name, warn, p.name + " is not installed: " + p.without, errdefs.HintOf(err)})
		}
	}
	return all
}

// bwrapPlaces is where bubblewrap is looked for.
var bwrapPlaces = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"}

// checkSandbox looks for bubblewrap and tries the namespaces that every agent
// and tool needs.
func checkSandbox(ctx context.Context, _ *caller.Caller) []Finding {
	bwrap := ""
	for _, path := range bwrapPlaces {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			bwrap = path
			break
		}
	}
	if bwrap == "" {
		return []Finding{{"bubblewrap", broken, "bwrap is not installed: nothing can run", "apt install bubblewrap"}}
	}
	ctx, cancel := context.WithTimeout(ctx, trialDeadline)
	defer cancel()
	version, err := spawn.Trial(ctx, bwrap, "--version")
	if err != nil {
		return bad("bubblewrap", err, "reinstall bubblewrap")
	}
	all := good("bubblewrap", version+" at "+bwrap)
	_, err = spawn.Trial(ctx, bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
		"--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true")
	if err != nil {
		return append(all, bad("namespaces", err, namespaceRemedy())...)
	}
	return append(all, good("namespaces", "a sandbox starts")...)
}

// namespaceRemedy names the setting that forbids unprivileged namespaces here.
func namespaceRemedy() string {
	for _, knob := range []struct{ file, blocks, remedy string }{
		{"/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "an AppArmor profile that lets bwrap make user namespaces, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		if text, err := os.ReadFile(knob.file); err == nil && strings.TrimSpace(string(text)) == knob.blocks {
			return knob.remedy
		}
	}
	return "in a container, allow it to make user namespaces and to mount /proc"
}

// checkActivator says who listens for the agents.
func checkActivator(_ context.Context, from *caller.Caller) []Finding {
	switch {
	case activator.Running(from.Layout):
		detail := "ctxd serve runs"
		if pid := activator.PID(from.Layout); pid != 0 {
			detail = fmt.Sprintf("ctxd serve runs as process %d", pid)
		}
		return good("activator", detail)
	case ofMachine(from.Layout):
		return nil // systemd does, of which more below
	case activator.Own(from.Layout):
		return good("activator", "ctxd serve does not run; ctx starts it when it is needed")
	}
	return []Finding{{"activator", warn, "the tree is not yours: only its owner can see whether ctxd serve runs", "its owner starts it: ctxd serve, or systemd"}}
}

// Free space under which sessions are in danger, and under which that is worth
// a word, in bytes.
const (
	diskLow     = 64 << 20
	diskWarning = 1 << 30
)

func checkDisk(_ context.Context, from *caller.Caller) []Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(from.Layout.Root, &st); err != nil {
		return nil // no tree, which was said
	}
	free := int64(st.Bavail) * st.Bsize
	detail := render.Size(free) + " free for sessions"
	switch {
	case free < diskLow, st.Files > 0 && st.Ffree < 1000:
		return []Finding{{"disk", broken, detail + fmt.Sprintf(", %d files", st.Ffree), "free some space"}}
	case free < diskWarning:
		return []Finding{{"disk", warn, detail, "free some space"}}
	}
	return good("disk", detail)
}

// earliest is a moment that has passed: a clock before it is wrong.
var earliest = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkClock: nothing depends on the clock but what people read, so a wrong one
// is a warning.
func checkClock(_ context.Context, from *caller.Caller) []Finding {
	now := time.Now()
	if now.Before(earliest) {
		return []Finding{{"clock", warn, "the clock says " + now.UTC().Format(time.RFC3339), "set the clock"}}
	}
	if st, err := os.Stat(from.Layout.Root); err == nil && st.ModTime().After(now.Add(24*time.Hour)) {
		return []Finding{{"clock", warn, "the tree was changed in the future: the clock is or was wrong", "set the clock"}}
	}
	return good("clock", now.UTC().Format(time.RFC3339))
}

// checkCgroup says whether memory and process limits can be enforced.
func checkCgroup(context.Context, *caller.Caller) []Finding {
	text, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err != nil || len(strings.Fields(string(text))) == 0 {
		return []Finding{{"cgroup", warn, "no cgroup controllers: memory limits of units have no effect", ""}}
	}
	return good("cgroup", strings.TrimSpace(string(text)))
}
