package supervise

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/detach"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
)

// direct is the supervisor that is none: a process of its own session, found by
// the lock that its launcher holds (docs/reference/supervisors.md).
type direct struct {
	layout paths.Layout
	uid    uint32
}

func (direct) Name() string { return Direct }

func (d direct) Start(ctx context.Context, s Spec) (Instance, error) {
	if err := ctx.Err(); err != nil {
		return Instance{}, err
	}
	if i, err := d.Find(ctx, s.Unit); err == nil {
		return Instance{}, errdefs.New(errdefs.Exists, "%s: runs already, as process %d", s.Unit, i.PID)
	}
	log, err := detach.OpenLog(s.Log)
	if err != nil {
		return Instance{}, err
	}
	defer log.Close()
	p, err := detach.Start(detach.Program{Argv: s.Argv, Env: s.Env, Log: log})
	if err != nil {
		return Instance{}, err
	}
	i, err := d.instance(s.Unit, p.Pid)
	if err != nil {
		p.Kill()
		p.Wait()
		return Instance{}, err
	}
	p.Release()
	return i, nil
}

// instance describes the process with this pid.
func (d direct) instance(unit string, pid int) (Instance, error) {
	boot, err := procid.Boot()
	if err != nil {
		return Instance{}, err
	}
	id, err := procid.Of(pid)
	if err != nil {
		return Instance{}, err
	}
	return d.of(unit, id, boot), nil
}

func (d direct) of(unit string, id procid.ID, boot string) Instance {
	return Instance{
		Supervisor: Direct, Unit: unit, Invocation: invocation(unit, id, boot),
		PID: id.PID, Start: id.Start, Boot: boot, UID: d.uid,
	}
}

// invocation is the id of a direct start: nothing is there to choose one, so it
// follows from what makes the start unique.
func invocation(unit string, id procid.ID, boot string) string {
	sum := sha256.Sum256([]byte(unit + "\n" + id.Line(boot)))
	return hex.EncodeToString(sum[:16])
}

func (d direct) Find(_ context.Context, unit string) (Instance, error) {
	agent, session, err := ParseUnit(d.layout, unit)
	if err != nil {
		return Instance{}, err
	}
	return d.find(agent, session)
}

// find reads who holds the lock of a session's terminal. A launcher that runs in
// a unit of systemd is not ours.
func (d direct) find(a libctx.Agent, s libctx.Session) (Instance, error) {
	unit := Unit(d.layout, a, s)
	none := errdefs.New(errdefs.NotFound, "%s: does not run", unit)
	dir, err := atomicfile.OpenDir(d.layout.Locks)
	if err != nil {
		return Instance{}, notThere(err, none)
	}
	defer dir.Close()
	text, err := dir.ReadFile(filepath.Base(d.layout.TerminalLock(a, s)), libctx.MaxControlFile)
	if err != nil {
		return Instance{}, notThere(err, none)
	}
	id, boot, ok := procid.ParseLine(string(text))
	if !ok {
		return Instance{}, none // a launcher that is just beginning, or never got further
	}
	i := d.of(unit, id, boot)
	h, err := hold(i)
	if errdefs.Is(err, errdefs.NotFound) || errors.Is(err, ErrStale) {
		return Instance{}, none
	}
	if err != nil {
		return Instance{}, err
	}
	defer h.Close()
	if in, err := inUnit(i.PID, unit); in || err != nil {
		return Instance{}, none
	}
	return i, nil
}

func notThere(err error, none error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return none
	}
	return err
}

func (d direct) Stop(ctx context.Context, i Instance) error {
	h, err := prove(ctx, i)
	if err != nil {
		return err
	}
	defer h.Close()
	return end(ctx, h, libctx.TerminalStop)
}

// end asks a process to end, and makes it when it has not after a while.
func end(ctx context.Context, h *procid.Handle, while time.Duration) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := h.Signal(sig); errdefs.Is(err, errdefs.NotFound) {
			break
		} else if err != nil {
			return err
		}
		patience, cancel := context.WithTimeout(ctx, while)
		err := h.Wait(patience)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil || sig == syscall.SIGKILL {
			return errdefs.New(errdefs.Timeout, "process %d: did not end: %w", h.PID(), err)
		}
	}
	h.Reap() // if it is our own child
	return nil
}

func (d direct) List(ctx context.Context) ([]Instance, error) {
	var all []Instance
	locks, err := os.ReadDir(d.layout.Locks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "list terminals: %w", err)
	}
	for _, lock := range locks {
		name := strings.Split(lock.Name(), ":")
		if len(name) != 3 {
			continue
		}
		agent, err1 := libctx.ParseAgent(name[1])
		session, err2 := libctx.ParseSession(name[2])
		if err1 != nil || err2 != nil || d.layout.TerminalLock(agent, session) != filepath.Join(d.layout.Locks, lock.Name()) {
			continue // another lock of the tree
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i, err := d.find(agent, session)
		if errdefs.Is(err, errdefs.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}
