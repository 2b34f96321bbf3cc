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
	// Settle does what was put off until nobody asks for more.
	Settle(context.Context) error
}

// Systemd is the machine's. Its methods may be called from any goroutine.
type Systemd struct {
	mu    sync.Mutex
	stale bool // what is enabled was changed, and the manager has not read it
}

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
		changed, err := units.SetNetwork(units.Files, a, network)
		if err == nil && changed {
			err = m.Reload(ctx)
		}
		if err == nil {
			err = m.Enable(ctx, socket)
			s.stale = true
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
		s.stale = true
		_, err := units.SetNetwork(units.Files, a, false)
		return err
	})
}

// Settle implements Units. A socket that was enabled and started listens; that the
// target wants it the manager learns when it reads its files anew, which takes the
// longer the more units there are.
func (s *Systemd) Settle(ctx context.Context) error {
	return s.with(ctx, func(m *units.Manager) error {
		if !s.stale {
			return nil
		}
		err := m.Reload(ctx)
		s.stale = err != nil
		return err
	})
}
