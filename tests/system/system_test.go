// Package system drives system mode on a machine with a real systemd: the units
// of the suite, as root installs them, and what its users do by them. It needs
// root, so `make test` includes it only there.
package system

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/tests/internal/machine"
	"cortexfs.org/tests/internal/world"
)

// source is the folder of the units in the repository.
const source = "../../systemd"

// installed is where packages put what is in it.
var installed = map[string]string{
	".": "usr/lib/systemd/system", "tmpfiles.d": "usr/lib/tmpfiles.d",
	"sysusers.d": "usr/lib/sysusers.d", "system-preset": "usr/lib/systemd/system-preset",
}

// prepare does in the root what the scripts of packages do.
const prepare = `
for p in ctx ctxd ctxmodel ctxterm ctxtool tsh; do ln -s /usr/local/bin/$p /usr/bin/$p; done
systemd-sysusers
`

var (
	programs, files string // folders
	booted          = sync.OnceValues(func() (*machine.Machine, error) {
		if err := stage(); err != nil {
			return nil, err
		}
		return machine.BootWith(machine.Setup{Programs: programs, Files: files, Prepare: prepare})
	})
)

// stage puts the units where a machine has them.
func stage() (err error) {
	if files, err = os.MkdirTemp("", "ctx-files-"); err != nil {
		return err
	}
	for from, to := range installed {
		to = filepath.Join(files, to)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		err := filepath.WalkDir(filepath.Join(source, from), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir():
				if path != filepath.Join(source, from) {
					return fs.SkipDir
				}
				return nil
			case strings.HasSuffix(path, ".md"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, d.Name()), text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// machineOf is the machine that all tests share, with the machine's tree.
func machineOf(t *testing.T) *machine.Machine {
	t.Helper()
	programs = world.Bin(t)
	m, err := booted()
	if err != nil {
		t.Fatal(err)
	}
	ready.Do(func() { m.Must(t, "ctx", "init", "--system") })
	return m
}

var ready sync.Once

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(programs)
	if programs != "" {
		if machine, err := booted(); err == nil && machine.Close() != nil {
			code = 1
		}
	}
	if files != "" {
		os.RemoveAll(files)
	}
	os.Exit(code)
}
