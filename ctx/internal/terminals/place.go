// Package terminals is what ctx does with terminals: start one under a
// supervisor, list them, say what one is, show one, and write out what was
// recorded of it.
package terminals

import (
	"context"
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/instances"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/tree"
)

// Of is the terminal of one session of an agent: the session named, else the
// current one, else the default. It need not have one yet.
func Of(from *caller.Caller, a libctx.Agent, session string) (terminal.Place, error) {
	at, err := from.Place(a)
	if err != nil {
		return terminal.Place{}, err
	}
	s, err := from.Session(a, session)
	return terminal.Place{Layout: from.Layout, Owner: at.Owner, Agent: a, Session: s}, err
}

// Named is the terminal that a person names: by its id, or as AGENT/SESSION where
// two have the same id. One that never was is errdefs.NotFound.
func Named(from *caller.Caller, word string) (terminal.Place, error) {
	if agent, session, ok := strings.Cut(word, "/"); ok {
		a, err := libctx.ParseAgent(agent)
		if err != nil {
			return terminal.Place{}, err
		}
		s, err := libctx.ParseSession(session)
		if err != nil {
			return terminal.Place{}, err
		}
		return known(from, a, s)
	}
	all, err := list(from)
	if err != nil {
		return terminal.Place{}, err
	}
	var found []terminal.Place
	var names []string
	for _, t := range all {
		if t.ID() == word {
			found, names = append(found, t.Place), append(names, t.String())
		}
	}
	switch len(found) {
	case 0:
		return terminal.Place{}, errdefs.New(errdefs.NotFound, "no terminal %.140q", word).WithHint("ctx terminal list lists them")
	case 1:
		return found[0], nil
	}
	return terminal.Place{}, errdefs.New(errdefs.Invalid, "terminal %s is ambiguous: %s have this id", word, strings.Join(names, " and ")).
		WithHint("name it as AGENT/SESSION")
}

// known is the terminal of a session, whose agent may be gone.
func known(from *caller.Caller, a libctx.Agent, s libctx.Session) (terminal.Place, error) {
	p := terminal.Place{Layout: from.Layout, Owner: asuser.Self(), Agent: a, Session: s}
	if at, err := from.Place(a); err == nil {
		p.Owner = at.Owner
	} else if !errdefs.Is(err, errdefs.NotFound) {
		return p, err
	}
	d, err := p.Open()
	if errdefs.Is(err, errdefs.NotFound) {
		return p, errdefs.New(errdefs.NotFound, "no terminal %s", p).WithHint("ctx terminal list lists them")
	}
	if err != nil {
		return p, err
	}
	return p, d.Close()
}

// list are the resources of the terminals that the caller may look at: their
// own, and for root those of every owner of an agent.
func list(from *caller.Caller) ([]terminal.Listed, error) {
	var all []terminal.Listed
	for _, owner := range owners(from) {
		some, err := terminal.List(from.Layout, owner)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func owners(from *caller.Caller) []asuser.Identity {
	all := []asuser.Identity{asuser.Self()}
	if all[0].UID != 0 {
		return all
	}
	agents, err := tree.ListAgents(from.Layout)
	if err != nil {
		return all // there are terminals without an agent, and a tree without any
	}
	for _, a := range agents {
		at, err := from.Place(a)
		if err == nil && !slices.ContainsFunc(all, func(o asuser.Identity) bool { return o.UID == at.Owner.UID }) {
			all = append(all, at.Owner)
		}
	}
	return all
}

// live are the living terminals of all owners.
func live(ctx context.Context, from *caller.Caller) (map[string]instances.Terminal, error) {
	all := map[string]instances.Terminal{}
	for _, owner := range owners(from) {
		some, err := instances.Live(ctx, from, owner.UID)
		if err != nil {
			return nil, err
		}
		for _, t := range some {
			all[string(t.Agent)+"/"+string(t.Session)] = t
		}
	}
	return all, nil
}

// session is how a command line names the session, "" for the default one.
func sessionFlag(s libctx.Session) string {
	if s == libctx.DefaultSession {
		return ""
	}
	return " --session " + string(s)
}
