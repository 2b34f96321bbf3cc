package daemon

import (
	"context"
	"os"
	"path/filepath"

	"cortexfs.org/ctxd/internal/admin"
	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/privilege"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/rundir"
	"cortexfs.org/libctx/unixsock"
)

// systemdRuns is there where systemd is the machine's init.
const systemdRuns = "/run/systemd/system"

// Admin serves the admin socket of a tree of root's until the context ends, or
// until it was idle. The socket is the passed one if there is one, else its own.
func Admin(ctx context.Context, o Options) error {
	if os.Geteuid() != 0 {
		return errdefs.New(errdefs.Denied, "only root changes a tree for its users").
			WithHint("a tree of your own needs no ctxd admin")
	}
	passed, err := config.PassedSocket()
	if err != nil {
		return err
	}
	if err := privilege.Drop(privilege.Admin...); err != nil {
		return err
	}
	logger, layout, err := prepare(o)
	if err != nil {
		return err
	}
	supervisor, done := supervised(logger)
	defer done()
	listener, err := adminListener(layout, passed)
	if err != nil {
		return err
	}
	defer listener.Close()
	if o.Idle < 0 {
		o.Idle = 0
		if passed != nil {
			o.Idle = idleDefault
		}
	}
	cfg := admin.Config{Layout: layout, Listener: listener, Idle: o.Idle, Log: logger}
	// The units are those of the machine's tree, and of no other.
	if _, err := os.Stat(systemdRuns); err == nil && layout.Root == paths.SystemRoot {
		cfg.Units = &admin.Systemd{}
	}
	s := admin.New(cfg)
	defer supervisor.Watch(ctx, s.Alive)()
	supervisor.Ready()
	logger.Info("serving", "version", libctx.Version, "pid", os.Getpid())
	err = s.Serve(ctx)
	logger.Info("admin ended")
	return err
}

func adminListener(l paths.Layout, passed *os.File) (*unixsock.Listener, error) {
	if passed != nil {
		return unixsock.Inherit(passed)
	}
	path := paths.AdminSocket(l.Root)
	if filepath.Dir(path) != l.Runtime {
		return nil, errdefs.New(errdefs.Internal, "admin socket %s: is not in %s", path, l.Runtime)
	}
	if err := rundir.Ensure(l); err != nil {
		return nil, err
	}
	return unixsock.Listen(path, unixsock.Options{Perm: 0o666, UID: -1, GID: -1})
}
