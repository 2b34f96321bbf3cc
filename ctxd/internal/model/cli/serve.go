package cli

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/ctxd/internal/model/drivers"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/unixsock"
)

// idleDefault is how long an activated ctxmodel stays without a connection.
const idleDefault = time.Minute

// firstFD is the lowest descriptor that --fd can name.
const firstFD = 3

func serve(ctx context.Context, o options, stderr io.Writer) error {
	p, err := prepare(o, "info", stderr)
	if err != nil {
		return refuseAll(ctx, p.passed, err)
	}
	s := &model.Server{Service: model.Service{Layout: p.layout, Registry: drivers.All()}, Log: p.log, Drain: libctx.ModelDrain}
	if o.fd >= 0 {
		c, err := connection(o.fd)
		if err != nil {
			return err
		}
		return s.ServeOne(ctx, c)
	}
	s.Idle = max(o.idle, 0)
	if o.idle < 0 && p.passed != nil {
		s.Idle = idleDefault
	}
	l, err := listen(p.layout, p.passed)
	if err != nil {
		return err
	}
	defer l.Close()
	defer p.supervisor.Watch(ctx, s.Alive)()
	p.supervisor.Ready()
	p.log.Info("serving", "version", libctx.Version, "pid", os.Getpid())
	err = s.Serve(ctx, l)
	p.log.Info("serve ended")
	return err
}

// refusal is how long a server that can only refuse waits for more clients.
const refusal = time.Second

// refuseAll is what an activated server does that can not serve: whoever is
// queued is told why, instead of waiting for a server that never comes. The error
// is returned too.
func refuseAll(ctx context.Context, passed *os.File, why error) error {
	if passed == nil {
		return why
	}
	l, err := unixsock.Inherit(passed)
	if err != nil {
		return why
	}
	defer l.Close()
	s := &model.Server{Log: log.Discard(), Idle: refusal, Refusal: why}
	_ = s.Serve(ctx, l)
	return why
}

// listen takes the passed socket or makes the one of the tree.
func listen(l paths.Layout, passed *os.File) (*unixsock.Listener, error) {
	if passed != nil {
		return unixsock.Inherit(passed)
	}
	if !paths.IsTree(l.Root) {
		return nil, errdefs.New(errdefs.NotFound, "%s is not a tree", l.Root).WithHint("ctx init makes one")
	}
	if err := rundir.Ensure(l); err != nil {
		return nil, err
	}
	return unixsock.Listen(l.ModelSocket(), unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
}

// connection is the connected Unix socket that is descriptor fd.
func connection(fd int) (*net.UnixConn, error) {
	if fd < firstFD {
		return nil, errdefs.New(errdefs.Invalid, "--fd %d is not %d or more", fd, firstFD)
	}
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "--fd %d is not a connection: %w", fd, err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errdefs.New(errdefs.Invalid, "--fd %d is not a Unix socket", fd)
	}
	return u, nil
}
