// Package config is where ctxd looks at its environment: everything else is
// given what it needs.
package config

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"github.com/coreos/go-systemd/v22/journal"
)

// Env is what the environment and the flags say about the tree.
func Env(root string) paths.Env {
	return paths.Env{
		Flag:       root,
		CTXRoot:    os.Getenv("CTX_ROOT"),
		Home:       os.Getenv("HOME"),
		DataHome:   os.Getenv("XDG_DATA_HOME"),
		RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"),
		ConfigHome: os.Getenv("XDG_CONFIG_HOME"),
		UID:        os.Geteuid(),
	}
}

// Environ is what the activator's servers inherit.
func Environ() []string { return os.Environ() }

// firstPassed is the number of the first descriptor a starter passes.
const firstPassed = 3

// PassedSocket is the listening socket a starter (systemd, ctxd serve) passed as
// descriptor 3, nil if there is none. LISTEN_PID may be absent: a starter that
// can not know the child's pid before it runs leaves it out; if present it must
// be ours. The variables are removed, so that no child takes them for its own.
func PassedSocket() (*os.File, error) {
	fds, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID")
	for _, name := range []string{"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if fds == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	if fds != "1" {
		return nil, errdefs.New(errdefs.Invalid, "LISTEN_FDS is %q: an agent has exactly one socket", fds)
	}
	return os.NewFile(firstPassed, "passed socket"), nil
}

// Supervisor is where the one who started this process wants to hear of it, and
// how long its silence is believed: "" and 0 if nobody does. The variables are
// removed, so that no child speaks in its place.
func Supervisor() (address string, watchdog time.Duration) {
	address = os.Getenv("NOTIFY_SOCKET")
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		watchdog = time.Duration(usec) * time.Microsecond
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return address, watchdog
}

// Journal reports whether standard error is the journal.
func Journal() bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is
}

// Programs are the suite's programs that are installed, free of links.
func Programs() []string {
	var all []string
	for _, name := range []string{"ctx", "ctxd", "ctxmodel", "ctxterm", "ctxtool", "tsh"} {
		if path := Program(name); path != "" {
			all = append(all, path)
		}
	}
	return all
}

// Program finds a program of the suite: beside this one, else where packages
// install it. "" means it is not installed.
func Program(name string) string {
	dirs := []string{"/usr/lib/cortexfs", "/usr/libexec/cortexfs", "/usr/bin", "/usr/local/bin"}
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	for _, d := range dirs {
		path := filepath.Join(d, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
