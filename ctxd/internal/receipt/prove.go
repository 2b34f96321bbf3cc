package receipt

import (
	"context"
	"net"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// prove compares everything a receipt says with the kernel and the supervisor.
func (k *Keeper) prove(ctx context.Context, s libctx.Session, r terminal.Receipt) error {
	bad := func(format string, args ...any) error { return errdefs.New(errdefs.Invalid, format, args...) }
	t := r.Terminal
	if err := k.sameControl(r); err != nil {
		return err
	}
	if t.Session != s {
		return bad("it is of session %s", t.Session)
	}
	if _, err := k.proveName(s, t); err != nil {
		return err
	}
	if err := k.proveIdentity(t); err != nil {
		return err
	}
	if err := supervise.Prove(ctx, instance(t)); err != nil {
		return err
	}
	return k.proveSocket(ctx, t)
}

// proveName: the unit and the socket are those of the session, in the layout that
// is returned.
func (k *Keeper) proveName(s libctx.Session, t terminal.Launch) (paths.Layout, error) {
	layout, err := k.layoutOf(s, t.Socket.Path)
	if err != nil {
		return layout, err
	}
	if unit := supervise.Unit(layout, k.Agent, s); t.Unit != unit {
		return layout, errdefs.New(errdefs.Invalid, "%w receipt: the unit of session %s is %s, not %.300q", supervise.ErrStale, s, unit, t.Unit)
	}
	return layout, nil
}

// proveIdentity: the launcher runs as the receipt says, and that is the agent's
// owner with no group that the agent has not.
func (k *Keeper) proveIdentity(t terminal.Launch) error {
	agent, err := k.identity()
	if err != nil {
		return err
	}
	now, err := procid.Identity(t.PID)
	if err != nil {
		return err
	}
	said := t.Identity
	if said.UID != now.UID || said.GID != now.GID || !sameGroups(said.Groups, now.Groups) {
		return errdefs.New(errdefs.Invalid, "process %d does not run as uid %d with gid %d and the groups that it says", t.PID, said.UID, said.GID)
	}
	if now.UID != agent.UID || now.UID != k.Owner.UID {
		return errdefs.New(errdefs.Invalid, "process %d runs as uid %d, the agent belongs to uid %d", t.PID, now.UID, agent.UID)
	}
	return subset(now, agent)
}

func sameGroups(a, b []uint32) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// subset refuses an identity with a group that the agent has not. That it lacks
// some is possible where the user was given one since the manager began.
func subset(now procid.Credentials, agent asuser.Identity) error {
	for _, g := range append(slices.Clip(now.Groups), now.GID) {
		if g != agent.GID && !slices.Contains(agent.Groups, g) {
			return errdefs.New(errdefs.Invalid, "its process has group %d, which the agent has not", g)
		}
	}
	return nil
}

// connect connects, as the owner, to the socket of a launch, and makes sure that its
// process made it listen. The caller closes the connection.
func (k *Keeper) connect(ctx context.Context, t terminal.Launch) (c *net.UnixConn, err error) {
	err = k.Owner.Be(func() error {
		c, err = unixsock.Dial(ctx, t.Socket.Path)
		return err
	})
	if err != nil {
		return nil, err
	}
	peer, err := peercred.Of(c)
	if err == nil && (peer.UID != k.Owner.UID || int(peer.PID) != t.PID) {
		err = errdefs.New(errdefs.Invalid, "%s: another process listens there", t.Socket.Path)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// proveSocket: the socket is the file that it was, its listener was made by the
// launcher, and it answers.
func (k *Keeper) proveSocket(ctx context.Context, t terminal.Launch) error {
	bad := func(what string) error { return errdefs.New(errdefs.Invalid, "%s: %s", t.Socket.Path, what) }
	var st unix.Stat_t
	if err := k.Owner.Do(func() error { return unix.Lstat(t.Socket.Path, &st) }); err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", t.Socket.Path, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		return bad("is no socket")
	case st.Dev != t.Socket.Dev || st.Ino != t.Socket.Ino:
		return bad("is another socket than that of the receipt")
	case st.Uid != k.Owner.UID:
		return bad("belongs to somebody else")
	}
	ctx, cancel := context.WithTimeout(ctx, libctx.TermHello)
	defer cancel()
	c, err := k.connect(ctx, t)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	// It may have too many clients, and says so; that it answers is what counts.
	line, err := termwire.MarshalRequest(&termwire.Watch{})
	if err == nil {
		_, err = c.Write(line)
	}
	if err == nil {
		line, err = wire.NewLines(c, libctx.MaxFrame).Next()
	}
	if err == nil {
		var f termwire.Frame
		f, err = termwire.DecodeFrame(line)
		switch f.(type) {
		case *termwire.Hello, *termwire.Error:
			return nil
		}
	}
	if err != nil {
		return errdefs.New(errdefs.Unavailable, "%s: does not answer: %w", t.Socket.Path, err)
	}
	return bad("answers what no terminal does")
}
