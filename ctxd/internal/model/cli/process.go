package cli

import (
	"io"
	"os"
	"path/filepath"

	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/notify"
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

// prepared is what a prepared process has.
type prepared struct {
	passed     *os.File // a listening socket, nil if there is none
	layout     paths.Layout
	log        *log.Logger
	supervisor *notify.Supervisor
}

// prepare guards the process, takes from the environment what it may say (a
// passed socket, who started it, and where the tree is), and empties it:
// libraries look there for keys, servers and proxies.
func prepare(o options, level string, stderr io.Writer) (p prepared, err error) {
	p.passed, err = config.PassedSocket()
	if guarded := guard(); guarded != nil {
		return p, guarded
	}
	env := config.Env(o.root)
	address, watchdog := config.Supervisor()
	newLog := log.New
	if config.Journal() {
		newLog = log.NewJournal
	}
	os.Clearenv()
	if err != nil {
		return p, err
	}
	if o.level != "" {
		level = o.level
	}
	if p.log, err = newLog(stderr, level); err != nil {
		return p, err
	}
	p.supervisor = notify.New(address, watchdog, p.log)
	if p.layout, err = paths.Find(env); err != nil {
		return p, err
	}
	for _, dir := range []struct {
		to   *string
		flag string
	}{{&p.layout.Config, o.config}, {&p.layout.Secrets, o.secrets}} {
		if dir.flag == "" {
			continue
		}
		if *dir.to, err = filepath.Abs(dir.flag); err != nil {
			return p, errdefs.New(errdefs.Invalid, "directory %q: %w", dir.flag, err)
		}
	}
	return p, nil
}
