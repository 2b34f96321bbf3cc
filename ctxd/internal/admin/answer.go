package admin

import (
	"context"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/units"
	"cortexfs.org/libctx/view"
)

// request is a request, and whose it is.
type request struct {
	adminwire.Request
	peer peercred.Peer
	rest *rest // the program that follows
}

// operation is a row of the table: who may, and what is done then.
type operation struct {
	may func(*Server, request) error
	do  func(*Server, context.Context, request) (adminwire.Reply, error)
}

// operations is every operation there is. One without a requirement is refused.
var operations = map[string]operation{
	adminwire.Ping:   {anybody, (*Server).ping},
	adminwire.New:    {forOwner, (*Server).create},
	adminwire.Set:    {keeper, (*Server).set},
	adminwire.Remove: {keeper, (*Server).remove},
	adminwire.Enable: {keeper, (*Server).enable},
}

// answer does what is asked if the peer may ask for it.
func (s *Server) answer(ctx context.Context, r request) (adminwire.Reply, error) {
	op, ok := operations[r.Op]
	if !ok || op.may == nil {
		return adminwire.Reply{}, errdefs.New(errdefs.Unsupported, "operation %.80q is not offered", r.Op)
	}
	if err := op.may(s, r); err != nil && !fault.Off("admin:peer") {
		return adminwire.Reply{}, err
	}
	// What was begun is brought to its end, whatever happens to the client or to
	// us.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), libctx.AdminUnitsWait)
	defer cancel()
	return op.do(s, ctx, r)
}

func anybody(*Server, request) error { return nil }

// nobody is what a uid reads that the kernel has no number for here. It is no
// match for anyone.
const nobody = 65534

// forOwner lets everybody make agents for themselves, and root for anybody.
func forOwner(_ *Server, r request) error {
	switch uid := r.peer.UID; {
	case uid == nobody:
		return errdefs.New(errdefs.Denied, "uid %d can have no agents", uid)
	case uid != 0 && r.Owner != nil && *r.Owner != uid:
		return errdefs.New(errdefs.Denied, "uid %d can not make an agent for uid %d", uid, *r.Owner).WithHint("root can")
	}
	return nil
}

// keeper lets those change an agent whose word its files are, and root.
func keeper(s *Server, r request) error {
	keeper, err := tree.Keeper(s.cfg.Layout, r.Agent)
	if err != nil {
		return err
	}
	if uid := r.peer.UID; uid != 0 && (uid != keeper || uid == nobody) {
		e := errdefs.New(errdefs.Denied, "agent %s: its files belong to uid %d", r.Agent, keeper)
		if keeper == 0 {
			return e.WithHint("root made it, and only root can change or remove it")
		}
		return e.WithHint("its owner or root can change and remove it")
	}
	return nil
}

func (s *Server) ping(context.Context, request) (adminwire.Reply, error) {
	return adminwire.Reply{Type: adminwire.Pong, Protocol: adminwire.Version, Version: libctx.Version}, nil
}

func (s *Server) create(ctx context.Context, r request) (done adminwire.Reply, err error) {
	if _, err := units.Socket(r.Agent); err != nil {
		return done, err
	}
	spec, err := s.spec(r)
	if err != nil {
		return done, err
	}
	if err := tree.NewAgent(s.cfg.Layout, spec); err != nil {
		return done, err
	}
	if err := s.arrange(ctx, r.Agent); err != nil {
		// It would be an agent that nobody can reach.
		if undo := tree.RemoveAgent(s.cfg.Layout, r.Agent, false); undo != nil {
			s.cfg.Log.Error("remove what was made", "agent", string(r.Agent), "why", undo.Error())
		}
		return done, err
	}
	return adminwire.Reply{Type: adminwire.Done}, nil
}

// spec is the agent that a request describes.
func (s *Server) spec(r request) (spec tree.AgentSpec, err error) {
	uid := r.peer.UID
	if r.Owner != nil {
		uid = *r.Owner
	}
	owner, name, err := asuser.Lookup(uid)
	if err != nil {
		return spec, err
	}
	if r.peer.UID != 0 {
		if name == "" {
			return spec, errdefs.New(errdefs.Denied, "uid %d has no account in /etc/passwd, so its groups are not known", uid).
				WithHint("root can make an agent for it: ctx agent new --owner %d", uid)
		}
		n, err := tree.Kept(s.cfg.Layout, uid)
		if err != nil {
			return spec, err
		}
		if n >= libctx.MaxUserAgents {
			return spec, errdefs.New(errdefs.NoSpace, "uid %d has %d agents, which is the limit", uid, n).
				WithHint("ctx agent rm removes one; root can make more")
		}
	}
	spec = tree.AgentSpec{Name: r.Agent, Owner: owner, Allow: r.Allow, Own: r.peer.UID != 0}
	if r.Program > 0 {
		spec.Program = r.rest
	} else if spec.Model, err = libctx.ParseModel(r.Model); err != nil {
		return spec, err
	}
	if r.Perm != "" {
		perm, err := control.ParsePerm(r.Perm)
		if err != nil {
			return spec, err
		}
		spec.Perm = &perm
	}
	for _, list := range []struct {
		to   *[]libctx.Tool
		from []string
	}{{&spec.Tools, r.Tools}, {&spec.Native, r.Native}} {
		for _, name := range list.from {
			t, err := libctx.ParseTool(name)
			if err != nil {
				return spec, err
			}
			*list.to = append(*list.to, t)
		}
	}
	for _, text := range r.Mounts {
		m, err := mount.ParseFlag(text)
		if err != nil {
			return spec, err
		}
		spec.Mounts = append(spec.Mounts, m)
	}
	if r.System != nil {
		spec.System = []byte(*r.System)
	}
	return spec, nil
}

// networked are the controls that can open the network to an agent.
var networked = []string{"policy", "label"}

func (s *Server) set(ctx context.Context, r request) (done adminwire.Reply, err error) {
	if err := tree.SetControl(s.cfg.Layout, r.Agent, r.Control, []byte(*r.Content)); err != nil {
		return done, err
	}
	done.Type = adminwire.Done
	if slices.Contains(networked, r.Control) && s.cfg.Units != nil {
		changed, err := s.cfg.Units.Network(ctx, r.Agent, s.network(r.Agent))
		if err != nil {
			return done, err
		}
		if changed {
			done.Note = "what changed of the network counts when the agent's process starts next: ctx agent stop " + string(r.Agent)
		}
	}
	return done, nil
}

// network reports whether an agent's policy opens the network to it. One that is
// refused has none.
func (s *Server) network(a libctx.Agent) bool {
	v, err := view.Load(s.cfg.Layout, a)
	return err == nil && v.Network
}

func (s *Server) enable(ctx context.Context, r request) (adminwire.Reply, error) {
	return adminwire.Reply{Type: adminwire.Done}, s.arrange(ctx, r.Agent)
}

// arrange makes the units of an agent what its files ask for.
func (s *Server) arrange(ctx context.Context, a libctx.Agent) error {
	if s.cfg.Units == nil {
		return nil
	}
	return s.cfg.Units.Enable(ctx, a, s.network(a))
}

func (s *Server) remove(ctx context.Context, r request) (adminwire.Reply, error) {
	if s.cfg.Units != nil {
		if err := s.cfg.Units.Remove(ctx, r.Agent); err != nil {
			return adminwire.Reply{}, err
		}
	}
	return adminwire.Reply{Type: adminwire.Done}, tree.RemoveAgent(s.cfg.Layout, r.Agent, r.Purge)
}
