// Package units asks the machine's systemd for the units of system mode
// (docs/reference/system.md): those of an agent, and those of the suite.
package units

import (
	"context"
	"errors"
	"os"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// The units that a machine has once.
const (
	Target      = "cortexfs.target"
	Mount       = "ctx.mount"
	AdminSocket = "ctxd-admin.socket"
	ModelSocket = "ctxmodel.socket"
)

// Pattern matches the names of all units of the suite's services and sockets.
func Pattern() []string { return []string{"ctxd@*", "ctxd-admin.*", "ctxmodel.*", Mount, Target} }

// Socket is the unit of an agent's socket. A name that no unit can have is
// errdefs.Invalid: they take every character of a name but "+".
func Socket(a libctx.Agent) (string, error) { return instance(a, ".socket") }

// Service is the unit of an agent's server; errors are those of Socket.
func Service(a libctx.Agent) (string, error) { return instance(a, ".service") }

func instance(a libctx.Agent, suffix string) (string, error) {
	if _, err := libctx.ParseAgent(string(a)); err != nil {
		return "", err
	}
	if strings.Contains(string(a), "+") {
		return "", errdefs.New(errdefs.Invalid, "agent name %q: \"+\" can not stand in the name of a unit", a)
	}
	return "ctxd@" + string(a) + suffix, nil
}

// Manager is a connection to the machine's systemd. Close it.
type Manager struct{ c *systemd.Conn }

// Connect reaches the machine's systemd: root directly, everybody else, who may
// only ask, over the system bus. One that is not there is errdefs.Unavailable.
func Connect(ctx context.Context) (*Manager, error) {
	connect := systemd.NewSystemConnectionContext
	if os.Geteuid() == 0 {
		connect = systemd.NewSystemdConnectionContext
	}
	c, err := connect(ctx)
	if err != nil {
		return nil, errdefs.New(errdefs.Unavailable, "systemd: %w", err).
			WithHint("without systemd, root keeps the sockets of agents with ctxd serve")
	}
	return &Manager{c}, nil
}

// Close ends the connection.
func (m *Manager) Close() { m.c.Close() }

// Enable makes units start with the machine. One that no file describes is
// errdefs.NotFound.
func (m *Manager) Enable(ctx context.Context, names ...string) error {
	_, _, err := m.c.EnableUnitFilesContext(ctx, names, false, false)
	return explain(ctx, "enable", strings.Join(names, " "), err)
}

// Disable undoes Enable; one that is not enabled is no error.
func (m *Manager) Disable(ctx context.Context, names ...string) error {
	_, err := m.c.DisableUnitFilesContext(ctx, names, false)
	if err = explain(ctx, "disable", strings.Join(names, " "), err); errdefs.Is(err, errdefs.NotFound) {
		return nil
	}
	return err
}

// Start starts a unit, and what it needs, and waits for it; one that runs already
// is no error.
func (m *Manager) Start(ctx context.Context, name string) error {
	return m.job(ctx, "start", name, m.c.StartUnitContext)
}

// Stop stops a unit and waits for its end; one that does not run, or that there is
// not, is no error.
func (m *Manager) Stop(ctx context.Context, name string) error {
	err := m.job(ctx, "stop", name, m.c.StopUnitContext)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil
	}
	return err
}

// Reset forgets that a unit failed.
func (m *Manager) Reset(ctx context.Context, name string) {
	_ = m.c.ResetFailedUnitContext(ctx, name) // which is an error if it did not
}

// Reload makes the manager read the files of units anew.
func (m *Manager) Reload(ctx context.Context) error {
	return explain(ctx, "reload", "units", m.c.ReloadContext(ctx))
}

// State is what the manager says of a unit.
type State struct {
	Name   string
	Load   string // "loaded", "not-found", …
	Active string // "active", "inactive", "failed", …
	File   string // "enabled", "disabled", "static", …; "" if there is no file
	Error  string // why it failed: what systemd calls the result; "success" if it did not
}

// Find asks for the state of a unit. One that there is not is no error.
func (m *Manager) Find(ctx context.Context, name string) (State, error) {
	p, err := m.c.GetAllPropertiesContext(ctx, name)
	if err != nil {
		return State{}, explain(ctx, "ask for", name, err)
	}
	text := func(key string) string { s, _ := p[key].(string); return s }
	return State{
		Name: name, Load: text("LoadState"), Active: text("ActiveState"), File: text("UnitFileState"), Error: text("Result"),
	}, nil
}

// Failed lists the units of the suite that have failed.
func (m *Manager) Failed(ctx context.Context) ([]string, error) {
	list, err := m.c.ListUnitsByPatternsContext(ctx, []string{"failed"}, Pattern())
	if err != nil {
		return nil, explain(ctx, "list", "units", err)
	}
	var names []string
	for _, u := range list {
		names = append(names, u.Name)
	}
	return names, nil
}

type operation func(ctx context.Context, name, mode string, done chan<- string) (int, error)

func (m *Manager) job(ctx context.Context, what, name string, do operation) error {
	done := make(chan string, 1)
	if _, err := do(ctx, name, "replace", done); err != nil {
		return explain(ctx, what, name, err)
	}
	select {
	case result := <-done:
		if result == "done" {
			return nil
		}
		return errdefs.New(errdefs.Unavailable, "systemd could not %s %s: %s", what, name, result).
			WithHint("journalctl -u '%s' shows what it said", name)
	case <-ctx.Done():
		return errdefs.New(errdefs.Timeout, "systemd did not %s %s in time: %w", what, name, context.Cause(ctx))
	}
}

// explain gives an error of the bus a kind.
func explain(ctx context.Context, what, name string, err error) error {
	if err == nil {
		return nil
	}
	kind := errdefs.Unavailable
	var said dbus.Error
	switch {
	case ctx.Err() != nil:
		kind = errdefs.Timeout
	case errors.As(err, &said):
		switch said.Name {
		case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.UnitNotFound",
			"org.freedesktop.DBus.Error.FileNotFound", "org.freedesktop.systemd1.NoSuchUnitFile":
			kind = errdefs.NotFound
		case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
			kind = errdefs.Denied
		}
	}
	return errdefs.New(kind, "systemd: %s %s: %w", what, name, err)
}
