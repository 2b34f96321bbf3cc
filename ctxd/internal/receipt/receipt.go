// Package receipt keeps the receipts of one agent's terminals
// (docs/reference/supervisors.md): it proves one that is handed over before it
// stores it, and says by those that are stored which terminals live and which may
// be stopped.
package receipt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Keeper keeps the receipts of one agent. Its methods may be called from any
// goroutine. A nil Keeper has nothing to stop.
type Keeper struct {
	Layout paths.Layout
	Agent  libctx.Agent
	Owner  asuser.Identity
}

func (k *Keeper) place(s libctx.Session) terminal.Place {
	return terminal.Place{Layout: k.Layout, Owner: k.Owner, Agent: k.Agent, Session: s}
}

// Accept proves a receipt and stores it in the terminal's resource and, as the
// latest one, in the agent's control directory. It returns the frame for the
// session's history. A receipt that is not proven is an error, and nothing was
// stored: errdefs.Invalid if it says what is not so, errdefs.NotFound if its
// terminal is gone, errdefs.Unavailable if it can not be found out.
func (k *Keeper) Accept(ctx context.Context, s libctx.Session, text jsontext.Value) (*wire.AgentStart, error) {
	r, err := terminal.ParseReceipt(text)
	if err != nil {
		return nil, err
	}
	control, err := k.control()
	if err != nil {
		return nil, err
	}
	defer control.Close()
	if err := k.prove(ctx, s, r); err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "receipt refused: %w", err)
	}
	if err := k.place(s).SetReceipt(r); err != nil {
		return nil, err
	}
	if err := k.within(control, func() error { return terminal.Project(control, r) }); err != nil {
		return nil, err
	}
	t := r.Terminal
	return &wire.AgentStart{
		Head: wire.Head{Type: "agent.start"}, Terminal: terminal.ID(k.Agent, s), Supervisor: t.Supervisor,
		Unit: t.Unit, Invocation: t.Invocation, PID: t.PID, Started: t.Start, Boot: t.Boot,
	}, nil
}

// within changes the open control directory with the rights of whoever it belongs
// to: in the owner's, root is a stranger like others.
func (k *Keeper) within(control *atomicfile.Dir, change func() error) error {
	var st unix.Stat_t
	if err := unix.Fstat(control.FD(), &st); err != nil {
		return errdefs.New(errdefs.KindOf(err), "agent %s: %w", k.Agent, err)
	}
	if st.Uid == k.Owner.UID {
		return k.Owner.Do(change)
	}
	return change()
}

// control opens the agent's control directory.
func (k *Keeper) control() (*atomicfile.Dir, error) {
	agents, err := atomicfile.OpenDir(k.Layout.Agents())
	if err != nil {
		return nil, err
	}
	defer agents.Close()
	return agents.Sub(filepath.Base(k.Layout.Control(k.Agent)))
}

// layoutOf is the layout in which the session's terminal has this socket. If this
// process works for somebody else that is one of theirs, with or without a runtime
// directory, which only they know. Its own terminal may have been started with
// another runtime directory than this process, and then the session's link leads
// there. That it is their socket the kernel says.
func (k *Keeper) layoutOf(s libctx.Session, socket string) (paths.Layout, error) {
	if k.Owner.IsSelf() {
		own := rundir.For(k.Layout, k.Owner.UID)
		if own.TerminalSocket(k.Agent, s) == socket {
			return own, nil
		}
		to, err := os.Readlink(own.TerminalLink(k.Owner.UID, k.Agent, s))
		if err == nil && to == socket && terminal.IsSocket(socket, k.Agent, s) {
			return own, nil
		}
	} else {
		uid := int(k.Owner.UID)
		dir, _, _ := strings.Cut(socket, "/cortexfs/")
		for _, env := range []paths.Env{{UID: uid, RuntimeDir: dir}, {UID: uid}} {
			l := rundir.For(paths.New(env, k.Layout.Root), k.Owner.UID)
			if l.TerminalSocket(k.Agent, s) == socket {
				return l, nil
			}
		}
	}
	return paths.Layout{}, errdefs.New(errdefs.Invalid, "%.300q is not where the terminal of session %s listens", socket, s)
}

// instance is the process that a launch is about.
func instance(t terminal.Launch) supervise.Instance {
	return supervise.Instance{
		Supervisor: t.Supervisor, Unit: t.Unit, Invocation: t.Invocation,
		PID: t.PID, Start: t.Start, Boot: t.Boot, UID: t.Identity.UID,
	}
}

// identity is as whom the agent runs now.
func (k *Keeper) identity() (asuser.Identity, error) {
	a, err := view.Load(k.Layout, k.Agent)
	if err != nil {
		return asuser.Identity{}, err
	}
	return a.Owner, nil
}

// stored is the receipt in the resource of a session's terminal;
// errdefs.NotFound if there is none.
func (k *Keeper) stored(s libctx.Session) (terminal.Receipt, terminal.Meta, error) {
	m, err := k.place(s).Load()
	if err != nil {
		return terminal.Receipt{}, m, err
	}
	if m.Receipt == nil {
		return terminal.Receipt{}, m, errdefs.New(errdefs.NotFound, "terminal of session %s: there is no receipt of it", s)
	}
	r, err := terminal.ParseReceipt(m.Receipt)
	if err == nil && r.Terminal.Session != s {
		err = errdefs.New(errdefs.Invalid, "terminal of session %s: its receipt is of session %s", s, r.Terminal.Session)
	}
	if err == nil {
		err = k.sameControl(r)
	}
	return r, m, err
}

// sameControl: the agent is still the one that the receipt is of.
func (k *Keeper) sameControl(r terminal.Receipt) error {
	control, err := k.control()
	if err != nil {
		return err
	}
	defer control.Close()
	var st unix.Stat_t
	if err := unix.Fstat(control.FD(), &st); err != nil {
		return errdefs.New(errdefs.KindOf(err), "agent %s: %w", k.Agent, err)
	}
	if r.Control.Dev != st.Dev || r.Control.Ino != st.Ino {
		return errdefs.New(errdefs.Invalid, "%w receipt: its control directory is another one", supervise.ErrStale)
	}
	return nil
}

// sessions lists the agent's sessions that have or had a terminal.
func (k *Keeper) sessions() ([]libctx.Session, error) {
	var names []libctx.Session
	err := k.Owner.Do(func() error {
		// A link there, or what its owner may not look into, holds no terminal that
		// was ever receipted, and keeps nobody from stopping the agent.
		dir, err := os.OpenFile(k.Layout.Sessions(k.Owner.UID, k.Agent), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		var entries []os.DirEntry
		if err == nil {
			entries, err = dir.ReadDir(-1)
			dir.Close()
		}
		if err != nil {
			return errdefs.New(errdefs.KindOf(err), "sessions of agent %s: %w", k.Agent, err)
		}
		slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			name, err := libctx.ParseSession(e.Name())
			if err != nil || !e.IsDir() {
				continue
			}
			if st, err := os.Lstat(k.Layout.TerminalResource(k.Owner.UID, k.Agent, name)); err == nil && st.IsDir() {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, err
}
