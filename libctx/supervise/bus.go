package supervise

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"cortexfs.org/libctx"
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
// listens on, which is there without a bus and the only one that lets root in.
// Who answers has to be the user: the directory is theirs, and root comes too.
func (m manager) dial(ctx context.Context) (*dbus.Conn, error) {
	own := int64(m.uid) == int64(os.Geteuid())
	if own {
		c, err := m.open(ctx, filepath.Join(m.dir, "bus"))
		if err == nil {
			if err = c.Hello(); err == nil {
				return c, nil
			}
			c.Close()
		}
	}
	return m.open(ctx, filepath.Join(m.dir, "systemd/private"))
}

func (m manager) open(ctx context.Context, path string) (*dbus.Conn, error) {
	sock, err := unixsock.Dial(ctx, path)
	if err != nil {
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
	if err := c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
