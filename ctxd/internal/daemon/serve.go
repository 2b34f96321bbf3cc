package daemon

import (
	"context"
	"os"
	"time"

	"cortexfs.org/ctxd/internal/activate"
	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Serve holds the sockets of all agents of the tree, and that of the models, and
// starts the server of each on its first connection. It ends with the context; another one for the same
// tree is errdefs.Exists.
func Serve(ctx context.Context, o Options) error {
	logger, layout, err := prepare(o)
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(layout.ServeLock(), os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "lock: %w", err)
	}
	defer lock.Close()
	if err := own(ctx, lock); err != nil {
		return errdefs.New(errdefs.Exists, "another ctxd serve holds the sockets of %s", layout.Root)
	}
	supervisor, done := supervised(logger)
	defer done()
	self, err := os.Executable()
	if err != nil {
		return errdefs.New(errdefs.Internal, "own program: %w", err)
	}
	held := holder{layout: layout, self: self, options: o, env: config.Environ()}
	cfg := activate.Config{
		Layout: layout,
		Log:    logger,
		Agent:  held.agent,
		Ready:  supervisor.Ready,
	}
	if program := config.Program("ctxmodel"); program != "" {
		cfg.Others = []activate.Socket{held.models(program)}
	}
	err = activate.Run(ctx, cfg)
	logger.Info("serve ended")
	return err
}

// own takes the lock of a tree's activator. Clients look whether it is taken by
// taking it shared for an instant, so a lock that can not be had is tried again
// before it counts as another activator's.
func own(ctx context.Context, lock *os.File) error {
	var err error
	for range 10 {
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}
