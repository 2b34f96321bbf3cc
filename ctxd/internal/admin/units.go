package admin

import (
	"context"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/units"
)

// Units is who keeps the sockets of agents.
type Units interface {
	// Enable lets the agent's socket listen, now and whenever the machine starts,
	// with the network open to its server or not.
	Enable(ctx context.Context, a libctx.Agent, network bool) error
	// Network opens the network to the agent's server, or closes it, from its next
	// start on, and reports whether that changed anything.
	Network(ctx context.Context, a libctx.Agent, open bool) (changed bool, err error)
	// Remove ends the agent's server and its socket, and forgets both.
	Remove(context.Context, libctx.Agent) error
}

// Systemd is the machine's. Its methods may be called from any goroutine.
type Systemd struct{ mu sync.Mutex }

// with does one thing at a time: the manager does too.
func (s *Systemd) with(ctx context.Context, work func(*units.Manager) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := units.Connect(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
	return work(m)
}

// Enable implements Units.
func (s *Systemd) Enable(ctx context.Context, a libctx.Agent, network bool) error {
	socket, err := units.Socket(a)
	if err != nil {
		return err
	}
	return s.with(ctx, func(m *units.Manager) error {
		if _, err := units.SetNetwork(units.Files, a, network); err != nil {
			return err
		}
		err := m.Enable(ctx, socket)
		if err == nil {
			err = m.Reload(ctx) // so that the target knows the socket too
		}
		if err == nil {
			err = m.Start(ctx, socket)
		}
		if err != nil {
			_ = m.Disable(ctx, socket) // the first error says why
		}
		return err
	})
}

// Network implements Units.
func (s *Systemd) Network(ctx context.Context, a libctx.Agent, open bool) (changed bool, err error) {
	err = s.with(ctx, func(m *units.Manager) error {
		if changed, err = units.SetNetwork(units.Files, a, open); err != nil || !changed {
			return err
		}
		return m.Reload(ctx)
	})
	return changed, err
}

// Remove implements Units.
func (s *Systemd) Remove(ctx context.Context, a libctx.Agent) error {
	socket, err := units.Socket(a)
	if err != nil {
		return nil // it never had any
	}
	service, err := units.Service(a)
	if err != nil {
		return err
	}
	return s.with(ctx, func(m *units.Manager) error {
		if err := m.Disable(ctx, socket); err != nil {
			return err
		}
		// The socket first: with it no connection starts the server again.
		for _, name := range []string{socket, service} {
			if err := m.Stop(ctx, name); err != nil {
				return err
			}
			m.Reset(ctx, name)
		}
		if _, err := units.SetNetwork(units.Files, a, false); err != nil {
			return err
		}
		return m.Reload(ctx)
	})
}
