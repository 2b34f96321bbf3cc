package supervise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"golang.org/x/sys/unix"
)

// Prove says whether an instance is the one that runs now: its process is alive,
// with its start time, in this boot, as its user; for systemd also in the unit's
// cgroup, with the invocation that the manager has for the unit.
//
// An instance that is over is errdefs.NotFound. One whose name something else has
// now, a reused pid, another start of the unit, a unit of another name, has
// ErrStale in its chain and is errdefs.Invalid. What can not be found out is an
// error too (errdefs.Unavailable): nothing is proven by default.
func Prove(ctx context.Context, i Instance) error {
	h, err := prove(ctx, i)
	if err != nil {
		return err
	}
	return h.Close()
}

// Alive is Prove by what the kernel says alone: cheap, enough to show something,
// and not enough to stop anything.
func Alive(i Instance) error {
	h, err := hold(i)
	if err != nil {
		return err
	}
	return h.Close()
}

// prove is Prove that keeps hold of the process.
func prove(ctx context.Context, i Instance) (*procid.Handle, error) {
	h, err := hold(i)
	if err != nil {
		return nil, err
	}
	if i.Supervisor == Systemd {
		err = manager{dir: userDir(i.UID), uid: i.UID}.invoked(ctx, i)
	}
	if err == nil && h.Ended() { // what was read may be about another process
		err = over(i)
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func over(i Instance) error {
	return errdefs.New(errdefs.NotFound, "%s: process %d is gone", i.Unit, i.PID)
}

// hold takes hold of the process of an instance after checking what the kernel
// says of it.
func hold(i Instance) (*procid.Handle, error) {
	if i.Supervisor != Systemd && i.Supervisor != Direct || i.PID <= 0 {
		return nil, errdefs.New(errdefs.Invalid, "receipt: process %d of supervisor %.40q", i.PID, i.Supervisor)
	}
	boot, err := procid.Boot()
	if err != nil {
		return nil, err
	}
	if i.Boot != boot {
		return nil, errdefs.New(errdefs.NotFound, "%s: it belongs to an earlier boot", i.Unit)
	}
	h, err := procid.Open(i.PID)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, over(i)
	}
	if err != nil {
		return nil, err
	}
	if err := check(i, h); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func check(i Instance, h *procid.Handle) error {
	id, err := procid.Of(i.PID)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
		return over(i)
	case err != nil:
		return err
	case id.Start != i.Start:
		return stale("process %d is another one", i.PID)
	case h.Ended():
		return over(i)
	}
	now, err := procid.Identity(i.PID)
	if err != nil {
		return err
	}
	if now.UID != i.UID {
		return stale("process %d belongs to uid %d, not %d", i.PID, now.UID, i.UID)
	}
	if i.Supervisor == Direct {
		if i.Invocation != invocation(i.Unit, id, i.Boot) {
			return stale("it is not one of unit %s", i.Unit)
		}
		return nil
	}
	in, err := inUnit(i.PID, i.Unit)
	if err == nil && !in {
		err = stale("process %d is not in unit %s", i.PID, i.Unit)
	}
	return err
}

// inUnit reports whether systemd started a process, or one of its ancestors, for
// a unit.
func inUnit(pid int, unit string) (bool, error) {
	groups, err := cgroups(pid)
	for _, group := range groups {
		if filepath.Base(group) == unit {
			return true, nil
		}
	}
	return false, err
}

// cgroups are the control groups in which systemd may have put a process.
func cgroups(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, errdefs.New(errdefs.NotFound, "process %d: is gone: %w", pid, err)
	}
	return unitGroups(string(text)), nil
}

// unitGroups reads /proc/PID/cgroup: the hierarchy of cgroup v2, and the one that
// older machines have for systemd alone. There may be both, and one of them in
// no use.
func unitGroups(text string) []string {
	var groups []string
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.SplitN(line, ":", 3) // number, controllers, path
		if len(f) == 3 && (f[0] == "0" && f[1] == "" || f[1] == "name=systemd") {
			groups = append(groups, f[2])
		}
	}
	return groups
}

// marked is the invocation that systemd wrote on the cgroup of a process, "" if
// there is none to be read.
func marked(pid int) string {
	groups, err := cgroups(pid)
	if err != nil {
		return ""
	}
	for _, group := range groups {
		value := make([]byte, 64)
		n, err := unix.Lgetxattr(filepath.Join("/sys/fs/cgroup", group), "user.invocation_id", value)
		if err == nil {
			return string(value[:n])
		}
	}
	return ""
}
