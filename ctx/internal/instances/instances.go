// Package instances says which terminals are alive, by the word of supervisors
// and kernel; what files say of it is not asked.
package instances

import (
	"cmp"
	"context"
	"slices"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/supervise"
)

// Terminal is a living terminal: its launcher.
type Terminal struct {
	Agent   libctx.Agent
	Session libctx.Session
	supervise.Instance
}

// Live lists the living terminals of one user in the caller's tree, under
// whichever supervisor, by agent and session in the order of names.
func Live(ctx context.Context, from *caller.Caller, uid uint32) ([]Terminal, error) {
	var all []Terminal
	err := each(ctx, from, uid, func(s supervise.Supervisor) error {
		list, err := s.List(ctx)
		for _, i := range list {
			a, name, err := supervise.ParseUnit(from.Layout, i.Unit)
			if err == nil { // else one of another tree
				all = append(all, Terminal{a, name, i})
			}
		}
		return err
	})
	slices.SortFunc(all, func(a, b Terminal) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Session, b.Session))
	})
	return all, err
}

// Find is the living terminal of a session; errdefs.NotFound if there is none.
func Find(ctx context.Context, from *caller.Caller, uid uint32, a libctx.Agent, s libctx.Session) (Terminal, error) {
	found := Terminal{Agent: a, Session: s}
	err := each(ctx, from, uid, func(by supervise.Supervisor) error {
		i, err := by.Find(ctx, supervise.Unit(from.Layout, a, s))
		if errdefs.Is(err, errdefs.NotFound) {
			return nil
		}
		if err == nil {
			found.Instance = i
		}
		return err
	})
	if err == nil && found.PID == 0 {
		err = errdefs.New(errdefs.NotFound, "terminal %s/%s: does not run", a, s)
	}
	return found, err
}

// each calls do with every supervisor there is.
func each(ctx context.Context, from *caller.Caller, uid uint32, do func(supervise.Supervisor) error) error {
	for _, name := range []string{supervise.Systemd, supervise.Direct} {
		s, err := supervise.New(ctx, name, from.Layout, uid)
		if errdefs.Is(err, errdefs.Unavailable) {
			continue // nothing of it can live
		}
		if err == nil {
			err = do(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
