// Package supervise starts, finds, proves and stops the processes of terminals
// (docs/reference/supervisors.md). There are two supervisors: the user's systemd
// manager, and none, where a process simply stands on its own.
//
// Whoever stops something has to say exactly what: an Instance names one process
// of one boot, and for systemd one invocation of one unit. What does not fit is
// left alone.
package supervise

import (
	"context"
	"errors"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
)

// The names of the supervisors, as flags and receipts say them.
const (
	Auto    = "auto" // systemd if it can be reached, else direct
	Systemd = "systemd"
	Direct  = "direct"
)

// Spec says what to start. It may hold no secret: command lines and properties
// of units are for everybody to read.
type Spec struct {
	Unit        string   // made by Unit
	Description string   // one line for people
	Argv        []string // an absolute program, and its arguments
	Env         []string // all of the environment, NAME=VALUE
	Log         string   // direct: the file its output is appended to, made 0600; systemd has a journal
}

// Instance is one start of one unit: what a receipt holds of it.
type Instance struct {
	Supervisor string // Systemd or Direct
	Unit       string
	Invocation string // id of this start, 32 hexadecimal digits: systemd's, or for direct one that follows from the process
	PID        int    // of the unit's main process
	Start      uint64 // its start time in clock ticks since boot
	Boot       string // the id of the boot
	UID        uint32 // whose process it is
}

// Supervisor owns the life of instances. Its methods may be called from any
// goroutine. They end with their context at the latest.
type Supervisor interface {
	// Name is Systemd or Direct.
	Name() string
	// Start starts a unit and returns once its program has been executed. A unit
	// of that name that lives is errdefs.Exists; a supervisor that is not there
	// errdefs.Unavailable. After an error nothing of it is left.
	Start(context.Context, Spec) (Instance, error)
	// Find looks a living unit up; none is errdefs.NotFound.
	Find(ctx context.Context, unit string) (Instance, error)
	// Stop proves the instance, then ends it and all it started, and waits until
	// it is gone. Its errors are those of Prove, nothing was touched then, and
	// errdefs.Timeout.
	Stop(context.Context, Instance) error
	// List lists the living units of terminals.
	List(context.Context) ([]Instance, error)
}

// New is the supervisor of that name for the user with this uid, whose terminals
// have their locks where the layout says (rundir.For). Any other name is errdefs.Invalid;
// a systemd manager that can not be reached is errdefs.Unavailable, which Auto
// takes for a reason to use Direct.
func New(ctx context.Context, name string, l paths.Layout, uid uint32) (Supervisor, error) {
	switch name {
	case Direct:
		return direct{layout: rundir.For(l, uid), uid: uid}, nil
	case Systemd, Auto:
		m := manager{layout: l, dir: userDir(uid), uid: uid}
		err := m.reachable(ctx)
		if err == nil {
			return m, nil
		}
		if name == Auto && ctx.Err() == nil {
			return direct{layout: rundir.For(l, uid), uid: uid}, nil
		}
		return nil, errdefs.New(errdefs.KindOf(err), "%w", err).
			WithHint("--supervisor direct needs no manager; a login starts one, and loginctl enable-linger keeps it")
	}
	return nil, errdefs.New(errdefs.Invalid, "supervisor %.40q is none of auto, systemd, direct", name)
}

// ErrStale is in the chain of errors about an instance whose name another
// process or another start of the unit has now.
var ErrStale = errors.New("stale")

func stale(format string, args ...any) error {
	return errdefs.New(errdefs.Invalid, "%w receipt: "+format, append([]any{ErrStale}, args...)...)
}
