package system

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/units"
)

// patience is how long systemd may take.
const patience = time.Minute

// unitPlaces is where packages and administrators put unit files.
var unitPlaces = []string{"/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// mounted reports whether the machine's tree is a mount of the place where it is
// kept, as the units of the suite have it.
func mounted() bool {
	for _, dir := range unitPlaces {
		if _, err := os.Stat(filepath.Join(dir, units.Mount)); err == nil {
			return true
		}
	}
	return false
}

// keep makes the directory in which the machine's tree is kept. The units have
// exact modes for it (tmpfiles.d); without them nobody but root lists it.
func keep() error {
	err := os.Mkdir(paths.SystemState, 0o711)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(paths.SystemState, 0o711)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%w", err)
	}
	return nil
}

// startUnits mounts the tree and lets the sockets listen that a machine has once,
// now and whenever it starts.
func startUnits(ctx context.Context, from *caller.Caller) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		from.Note("systemd does not run here: later, systemctl enable --now " + units.Target)
		return nil
	}
	m, err := units.Connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Reload(ctx); err != nil { // their files may be new
		return err
	}
	if err := m.Enable(ctx, units.Target, units.Mount, units.AdminSocket, units.ModelSocket); err != nil {
		return err
	}
	for _, name := range []string{units.Mount, units.AdminSocket, units.ModelSocket, units.Target} {
		if err := m.Start(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
