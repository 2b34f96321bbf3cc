package supervise

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// manager is the systemd manager of one user.
type manager struct {
	layout paths.Layout // whose units List lists
	dir    string       // the user's runtime directory
	uid    uint32
}

// userDir is where systemd makes the runtime directory of a user. The
// environment is not asked: whoever stops a terminal need not be in the session
// that started it.
func userDir(uid uint32) string {
	return filepath.Join("/run/user", strconv.FormatUint(uint64(uid), 10))
}

func (manager) Name() string { return Systemd }

// reachable reports whether there is a manager that answers.
func (m manager) reachable(ctx context.Context) error {
	return m.with(ctx, func(_ context.Context, c *systemd.Conn) error {
		_, err := c.GetManagerProperty("Version")
		return err
	})
}

func (m manager) Start(ctx context.Context, s Spec) (Instance, error) {
	if len(s.Unit) > maxUnit {
		return Instance{}, errdefs.New(errdefs.Invalid, "%s: is too long for the name of a unit", s.Unit).
			WithHint("--supervisor direct takes names of any length")
	}
	var i Instance
	err := m.with(ctx, func(ctx context.Context, c *systemd.Conn) error {
		env, err := c.GetManagerProperty("Environment")
		if err != nil {
			return err
		}
		done := make(chan string, 1)
		if _, err := c.StartTransientUnitContext(ctx, s.Unit, "fail", properties(s, variables(env)), done); err != nil {
			return err
		}
		if err := m.await(ctx, s.Unit, "start", done); err != nil {
			c.StopUnitContext(context.WithoutCancel(ctx), s.Unit, "replace", nil)
			return err
		}
		i, err = m.find(ctx, c, s.Unit)
		return err
	})
	return i, err
}

// await waits for the end of a job.
func (m manager) await(ctx context.Context, unit, what string, done <-chan string) error {
	select {
	case result := <-done:
		if result == "done" {
			return nil
		}
		return errdefs.New(errdefs.Unavailable, "systemd could not %s %s: %s", what, unit, result).
			WithHint("journalctl --user -u '%s' shows what it said", unit)
	case <-ctx.Done():
		return errdefs.New(errdefs.Timeout, "systemd did not %s %s in time: %w", what, unit, context.Cause(ctx))
	}
}

func (m manager) Find(ctx context.Context, unit string) (i Instance, err error) {
	err = m.with(ctx, func(ctx context.Context, c *systemd.Conn) error {
		i, err = m.find(ctx, c, unit)
		return err
	})
	return i, err
}

// find reads what the manager and the kernel say of a unit.
func (m manager) find(ctx context.Context, c *systemd.Conn, unit string) (Instance, error) {
	none := errdefs.New(errdefs.NotFound, "%s: does not run", unit)
	p, err := c.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return Instance{}, err
	}
	// Properties of a unit that is gone can be read all the same.
	if p["LoadState"] != "loaded" || p["ActiveState"] == "inactive" || p["ActiveState"] == "failed" {
		return Instance{}, none
	}
	invocation, _ := p["InvocationID"].([]byte)
	if p, err = c.GetUnitTypePropertiesContext(ctx, unit, "Service"); err != nil {
		return Instance{}, err
	}
	pid, _ := p["MainPID"].(uint32)
	if pid == 0 || len(invocation) == 0 {
		return Instance{}, none
	}
	boot, err := procid.Boot()
	if err != nil {
		return Instance{}, err
	}
	id, err := procid.Of(int(pid))
	if err != nil {
		return Instance{}, none
	}
	i := Instance{
		Supervisor: Systemd, Unit: unit, Invocation: hex.EncodeToString(invocation),
		PID: id.PID, Start: id.Start, Boot: boot, UID: m.uid,
	}
	h, err := hold(i)
	if err != nil {
		return Instance{}, err
	}
	return i, h.Close()
}

func (m manager) Stop(ctx context.Context, i Instance) error {
	h, err := prove(ctx, i)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*libctx.TerminalStop)
	defer cancel()
	return m.with(ctx, func(ctx context.Context, c *systemd.Conn) error {
		done := make(chan string, 1)
		_, err := c.StopUnitContext(ctx, i.Unit, "replace", done)
		var e dbus.Error
		if errors.As(err, &e) && e.Name == "org.freedesktop.systemd1.NoSuchUnit" {
			return nil // it ended by itself meanwhile
		}
		if err != nil {
			return err
		}
		return m.await(ctx, i.Unit, "stop", done)
	})
}

func (m manager) List(ctx context.Context) (all []Instance, err error) {
	err = m.with(ctx, func(ctx context.Context, c *systemd.Conn) error {
		units, err := c.ListUnitsByPatternsContext(ctx, nil, []string{unitPrefix + "*" + unitSuffix})
		if err != nil {
			return err
		}
		for _, u := range units {
			if _, _, err := ParseUnit(m.layout, u.Name); err != nil {
				continue // another tree's
			}
			i, err := m.find(ctx, c, u.Name)
			if errdefs.Is(err, errdefs.NotFound) || errors.Is(err, ErrStale) {
				continue // it is just ending
			}
			if err != nil {
				return err
			}
			all = append(all, i)
		}
		return nil
	})
	return all, err
}

// invoked asks the manager whether the start that an instance names is the one
// that runs. Where the manager can not be reached, the id that it left on the
// cgroup decides; without one nothing is proven.
func (m manager) invoked(ctx context.Context, i Instance) error {
	now, err := m.Find(ctx, i.Unit)
	switch {
	case errdefs.Is(err, errdefs.Unavailable):
		if id := marked(i.PID); id == i.Invocation && id != "" {
			return nil
		}
		return err
	case err != nil:
		return err
	case now.Invocation != i.Invocation:
		return stale("unit %s was started again", i.Unit)
	case now.PID != i.PID:
		return stale("the main process of unit %s is %d, not %d", i.Unit, now.PID, i.PID)
	}
	return nil
}

// properties describes a transient unit.
func properties(s Spec, inherited []string) []systemd.Property {
	argv := make([]string, len(s.Argv))
	for n, word := range s.Argv {
		argv[n] = strings.ReplaceAll(word, "$", "$$") // systemd replaces variables
	}
	done := map[string]bool{} // systemd refuses a list that names one twice
	for _, pair := range s.Env {
		name, _, _ := strings.Cut(pair, "=")
		done[name] = true
	}
	var unset []string
	for _, name := range inherited {
		if !done[name] {
			unset = append(unset, name)
			done[name] = true
		}
	}
	type command struct {
		Path    string
		Argv    []string
		Unclean bool
	}
	p := func(name string, value any) systemd.Property {
		return systemd.Property{Name: name, Value: dbus.MakeVariant(value)}
	}
	return []systemd.Property{
		p("Description", s.Description),
		p("Type", "exec"),
		p("ExecStart", []command{{s.Argv[0], argv, false}}),
		p("Environment", append([]string{}, s.Env...)),
		p("UnsetEnvironment", unset),
		p("WorkingDirectory", "/"),
		p("CollectMode", "inactive-or-failed"),
		p("KillMode", "mixed"),
		p("TimeoutStopUSec", uint64(libctx.TerminalStop/time.Microsecond)),
		p("OOMPolicy", "continue"), // a program in the terminal is not the terminal
	}
}

// variables lists the names in the manager's environment, and those that systemd
// adds of itself. Text is a D-Bus array of strings in GVariant's notation.
func variables(text string) []string {
	names := []string{
		"CREDENTIALS_DIRECTORY", "HOME", "INVOCATION_ID", "JOURNAL_STREAM", "LANG", "LOGNAME", "MANAGERPID", "MANAGERPIDFDID",
		"MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "PATH", "SHELL", "SYSTEMD_EXEC_PID", "USER", "XDG_RUNTIME_DIR",
	}
	v, err := dbus.ParseVariant(text, dbus.ParseSignatureMust("as"))
	if err != nil {
		return names
	}
	pairs, _ := v.Value().([]string)
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}
