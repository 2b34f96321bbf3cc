package supervise

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/unixsock"
	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// with calls work with a connection to the manager, for at most
// libctx.ManagerTimeout if the context has no deadline of its own. Errors of the
// bus are given a kind: a manager that is not there, or no longer, is
// errdefs.Unavailable.
func (m manager) with(ctx context.Context, work func(context.Context, *systemd.Conn) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, libctx.ManagerTimeout)
		defer cancel()
	}
	c, err := systemd.NewConnection(func() (*dbus.Conn, error) { return m.dial(ctx) })
	if err == nil {
		defer c.Close()
		err = work(ctx, c)
	}
	return m.explain(ctx, err)
}

func (m manager) explain(ctx context.Context, err error) error {
	var typed *errdefs.Error
	var said dbus.Error
	switch {
	case err == nil, errors.As(err, &typed):
		return err
	case ctx.Err() != nil:
		return errdefs.New(errdefs.Unavailable, "systemd manager of uid %d: no answer: %w", m.uid, context.Cause(ctx))
	case errors.As(err, &said) && said.Name == "org.freedesktop.systemd1.UnitExists":
		return errdefs.New(errdefs.Exists, "systemd: %w", err)
	case errors.As(err, &said):
		return errdefs.New(errdefs.Unavailable, "systemd: %w", err)
	}
	return errdefs.New(errdefs.Unavailable, "systemd manager of uid %d: %w", m.uid, err)
}

// dial connects to the user's bus, or to the socket that the manager itself
// listens on, which is there without a bus. Root comes as the user: a server of
// root's has given up what it takes to enter the user's directory as root. Who
// answers has to be the user: the directory is theirs.
func (m manager) dial(ctx context.Context) (*dbus.Conn, error) {
	c, err := m.open(ctx, filepath.Join(m.dir, "bus"))
	if err == nil {
		if err = c.Hello(); err == nil {
			return c, nil
		}
		c.Close()
	}
	return m.open(ctx, filepath.Join(m.dir, "systemd/private"))
}

// caller is as whom a manager is asked: as its user, or where that can not be as
// oneself, who is let in nowhere then.
func (m manager) caller() (asuser.Identity, error) {
	if self := asuser.Self(); self.UID == m.uid || self.UID != 0 {
		return self, nil
	}
	id, _, err := asuser.Lookup(m.uid)
	return id, err
}

func (m manager) open(ctx context.Context, path string) (*dbus.Conn, error) {
	as, err := m.caller()
	if err != nil {
		return nil, err
	}
	var sock *net.UnixConn
	if err := as.Be(func() (err error) {
		sock, err = unixsock.Dial(ctx, path)
		return err
	}); err != nil {
		return nil, errdefs.New(errdefs.Unavailable, "no systemd manager of uid %d: %w", m.uid, err)
	}
	peer, err := peercred.Of(sock)
	if err == nil && peer.UID != m.uid {
		err = errdefs.New(errdefs.Unavailable, "%s: uid %d listens there", path, peer.UID)
	}
	if err != nil {
		sock.Close()
		return nil, err
	}
	c, err := dbus.NewConn(sock, dbus.WithContext(ctx))
	if err != nil {
		sock.Close()
		return nil, err
	}
	if err := c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.FormatUint(uint64(as.UID), 10))}); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
