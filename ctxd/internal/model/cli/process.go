package cli

import (
	"io"
	"os"
	"path/filepath"

	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/privilege"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// guard makes the process one that other programs of its user can neither trace
// nor read the memory of, and that leaves no core: keys are in its memory. It
// reads from the network, so it keeps no capability either; files of the keys are
// its own user's.
func guard() error {
	unix.Umask(0o077)
	if err := privilege.Drop(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return errdefs.New(errdefs.Internal, "make the process undumpable: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return errdefs.New(errdefs.Internal, "forbid core files: %w", err)
	}
	return nil
}

// prepare guards the process, takes from the environment what it may say (a
// passed socket, and where the tree is), and empties it: libraries look there
// for keys, servers and proxies.
func prepare(o options, level string, stderr io.Writer) (passed *os.File, l paths.Layout, logger *log.Logger, err error) {
	if err := guard(); err != nil {
		return nil, l, nil, err
	}
	passed, err = config.PassedSocket()
	env := config.Env(o.root)
	os.Clearenv()
	if err != nil {
		return nil, l, nil, err
	}
	if o.level != "" {
		level = o.level
	}
	if logger, err = log.New(stderr, level); err != nil {
		return nil, l, nil, err
	}
	if l, err = paths.Find(env); err != nil {
		return nil, l, nil, err
	}
	for _, dir := range []struct {
		to   *string
		flag string
	}{{&l.Config, o.config}, {&l.Secrets, o.secrets}} {
		if dir.flag == "" {
			continue
		}
		if *dir.to, err = filepath.Abs(dir.flag); err != nil {
			return nil, l, nil, errdefs.New(errdefs.Invalid, "directory %q: %w", dir.flag, err)
		}
	}
	return passed, l, logger, nil
}
