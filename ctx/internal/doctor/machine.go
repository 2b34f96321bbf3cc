package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cortexfs.org/ctx/internal/admin"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/units"
	"golang.org/x/sys/unix"
)

// systemdDeadline is how long systemd and ctxd admin have to answer.
const systemdDeadline = 10 * time.Second

// ofMachine reports whether the tree is the machine's, kept by systemd.
func ofMachine(l paths.Layout) bool {
	var st unix.Stat_t
	_, err := os.Stat("/run/systemd/system")
	return err == nil && l.Root == paths.SystemRoot && unix.Stat(l.Root, &st) == nil && st.Uid == 0
}

// checkMachine looks at what the machine's tree needs besides a tree: its mount,
// the sockets a machine has once, and the keys.
func checkMachine(ctx context.Context, from *caller.Caller) []Finding {
	if !ofMachine(from.Layout) {
		return nil
	}
	all := checkMount(from.Layout)
	ctx, cancel := context.WithTimeout(ctx, systemdDeadline)
	defer cancel()
	reply, err := admin.Ask(ctx, from.Layout, adminwire.Request{Op: adminwire.Ping}, nil)
	switch {
	case err != nil:
		all = append(all, bad("admin", err, "systemctl enable --now "+units.AdminSocket)...)
	case reply.Version != libctx.Version || reply.Protocol != adminwire.Version:
		all = append(all, Finding{"admin", warn, fmt.Sprintf("ctxd admin is version %s, ctx is %s", reply.Version, libctx.Version), "systemctl restart ctxd-admin.service"})
	default:
		all = append(all, good("admin", "ctxd admin answers")...)
	}
	socket := paths.New(paths.Env{}, from.Layout.Root).ModelSocket()
	if st, err := os.Lstat(socket); err != nil || st.Mode()&os.ModeSocket == 0 {
		all = append(all, Finding{"models", broken, socket + ": nothing listens for requests to models", "systemctl enable --now " + units.ModelSocket})
	} else {
		all = append(all, good("models", socket)...)
	}
	return append(all, checkKeys(from.Layout)...)
}

// checkMount looks whether the tree is where it is kept, and not what was there
// before.
func checkMount(l paths.Layout) []Finding {
	var here, above unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Stat(l.Root, &here), unix.Stat(filepath.Dir(l.Root), &above), unix.Statfs(l.Root, &fs)); err != nil {
		return bad("mount", errdefs.New(errdefs.IO, "%s: %w", l.Root, err), "")
	}
	var mounted unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, l.Root, 0, unix.STATX_BASIC_STATS, &mounted); err != nil || mounted.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return []Finding{{"mount", warn, l.Root + " is a directory of its own, and no mount of " + paths.SystemTree, "ctx init --system, or systemctl enable --now " + units.Mount}}
	}
	if fs.Flags&unix.ST_NOSUID == 0 || fs.Flags&unix.ST_NODEV == 0 {
		return []Finding{{"mount", warn, l.Root + " is mounted without nosuid or nodev", "systemctl restart " + units.Mount}}
	}
	return good("mount", l.Root)
}

// checkKeys looks, as root, whether the keys are readable by whom they are for,
// and by nobody else.
func checkKeys(l paths.Layout) []Finding {
	if os.Geteuid() != 0 {
		return nil
	}
	const keeper = "cortexfs-model"
	id, err := asuser.Named(keeper)
	if err != nil {
		return bad("keys", err, "systemd-sysusers cortexfs.conf")
	}
	var st unix.Stat_t
	if err := unix.Lstat(l.Secrets, &st); err != nil {
		return bad("keys", errdefs.New(errdefs.NotFound, "%s: %w", l.Secrets, err), "systemd-tmpfiles --create cortexfs.conf")
	}
	if st.Uid != id.UID || st.Mode != unix.S_IFDIR|0o700 {
		return []Finding{{"keys", broken, fmt.Sprintf("%s belongs to uid %d and has mode %04o", l.Secrets, st.Uid, st.Mode&0o7777), "systemd-tmpfiles --create cortexfs.conf"}}
	}
	return good("keys", l.Secrets)
}

// checkUnits asks systemd for the units of the caller's agents, and for what has
// failed.
func checkUnits(ctx context.Context, from *caller.Caller) []Finding {
	if !ofMachine(from.Layout) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, systemdDeadline)
	defer cancel()
	m, err := units.Connect(ctx)
	if err != nil {
		return []Finding{{"units", warn, err.Error(), "ask as root, or install dbus"}}
	}
	defer m.Close()
	failed, err := m.Failed(ctx)
	if err != nil {
		return bad("units", err, "")
	}
	var all []Finding
	for _, name := range failed {
		state, err := m.Find(ctx, name)
		if err != nil {
			return append(all, bad("units", err, "")...)
		}
		all = append(all, Finding{"units", broken, fmt.Sprintf("%s has failed: %s", name, state.Error), fmt.Sprintf("journalctl -u '%s'; then systemctl reset-failed '%[1]s'", name)})
	}
	agents, err := tree.ListAgents(from.Layout)
	if err != nil {
		return append(all, bad("units", err, "")...)
	}
	for _, a := range agents {
		if !mine(from.Layout, a) {
			continue
		}
		name, err := units.Socket(a)
		if err != nil {
			all = append(all, Finding{"units", broken, err.Error(), "make it anew under another name, and remove this one"})
			continue
		}
		state, err := m.Find(ctx, name)
		switch {
		case err != nil:
			all = append(all, bad("units", err, "")...)
		case state.Active != "active":
			all = append(all, Finding{"units", broken, fmt.Sprintf("%s is %s: nothing listens for agent %s", name, state.Active, a), "ctx agent enable " + string(a)})
		case state.File != "enabled":
			all = append(all, Finding{"units", warn, fmt.Sprintf("%s is %s: after the next start of the machine nothing listens for agent %s", name, state.File, a), "ctx agent enable " + string(a)})
		}
	}
	if len(all) == 0 {
		return good("units", "none has failed, and every agent's socket listens")
	}
	return all
}

// mine reports whether an agent is the caller's to worry about: all are root's,
// and all of a tree of one's own.
func mine(l paths.Layout, a libctx.Agent) bool {
	if os.Geteuid() == 0 || l.Root != paths.SystemRoot {
		return true
	}
	owner, err := tree.Owner(l, a)
	return err != nil || int64(owner) == int64(os.Geteuid())
}

// checkOwners looks, as root, for agents whose owner has no account any more.
func checkOwners(_ context.Context, from *caller.Caller) []Finding {
	if os.Geteuid() != 0 || !from.Layout.System {
		return nil
	}
	agents, err := tree.ListAgents(from.Layout)
	if err != nil {
		return nil // which was said
	}
	var all []Finding
	for _, a := range agents {
		owner, err := tree.Owner(from.Layout, a)
		if err != nil {
			continue // likewise
		}
		if _, name, err := asuser.Lookup(owner); err == nil && name == "" {
			all = append(all, Finding{"owners", warn, fmt.Sprintf("agent %s belongs to uid %d, which has no account", a, owner), fmt.Sprintf("ctx agent rm %s --purge, if the account is gone", a)})
		}
	}
	return all
}

// checkLinger says what becomes of the caller's terminals at a logout.
func checkLinger(context.Context, *caller.Caller) []Finding {
	uid := os.Geteuid()
	if _, err := os.Stat(fmt.Sprintf("/run/user/%d/systemd", uid)); err != nil || uid == 0 {
		return nil // no manager that could end
	}
	if supervise.Linger(uint32(uid)) {
		return good("linger", "your terminals live on when you log out")
	}
	return []Finding{{"linger", warn, "your terminals end with your last login", "loginctl enable-linger"}}
}
