package runs

import (
	"context"
	"os"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/tree"
)

// Listing is one agent of `ctx agent ps`.
type Listing struct {
	Agent  libctx.Agent `json:"agent"`
	State  string       `json:"state"` // "active", "idle", "listening" or "stopped"
	PID    int          `json:"pid"`
	Active []string     `json:"active"` // sessions with a run
	Parent libctx.Agent `json:"parent"`
	// Terminals are those that live.
	Terminals []Living `json:"terminals"`
}

// Living is a living terminal of an agent.
type Living struct {
	Session    libctx.Session `json:"session"`
	Supervisor string         `json:"supervisor"`
	Unit       string         `json:"unit"`
	PID        int            `json:"pid"` // of its launcher
}

// PS lists the agents and what of them is alive: processes by the word of the
// kernel, terminals by that of their supervisors. It connects to no agent that has
// no process, so it wakes none.
func PS(ctx context.Context, from *caller.Caller, asTree bool) error {
	agents, err := tree.ListAgents(from.Layout)
	if err != nil {
		return err
	}
	serving := activator.Running(from.Layout)
	list := make([]Listing, 0, len(agents))
	for _, a := range agents {
		item := listing(ctx, from, a, serving)
		if item.Terminals, err = terminals(ctx, from, a); err != nil {
			return err
		}
		list = append(list, item)
	}
	var rows []output.Row
	for _, item := range arrange(list, asTree) {
		pid := ""
		if item.PID != 0 {
			pid = strconv.Itoa(item.PID)
		}
		rows = append(rows, output.Row{
			Cells:  []string{item.indent + string(item.Agent), item.State, pid, strings.Join(item.Active, " "), sessionsOf(item.Terminals)},
			Object: item.Listing,
		})
	}
	return from.Table([]string{"AGENT", "STATE", "PID", "ACTIVE", "TERMINALS"}, rows)
}

// terminals are the living terminals of an agent; of one that is not the caller's
// to look at there are none.
func terminals(ctx context.Context, from *caller.Caller, a libctx.Agent) ([]Living, error) {
	found := []Living{}
	all, err := living(ctx, from, a, "")
	if err != nil && !errdefs.Is(err, errdefs.Denied) {
		return nil, err
	}
	for _, t := range all {
		found = append(found, Living{t.Session, t.Supervisor, t.Unit, t.PID})
	}
	return found, nil
}

func sessionsOf(terminals []Living) string {
	names := make([]string, len(terminals))
	for i, t := range terminals {
		names[i] = string(t.Session)
	}
	return strings.Join(names, " ")
}

func listing(ctx context.Context, from *caller.Caller, a libctx.Agent, serving bool) Listing {
	item := Listing{Agent: a, State: "stopped", Active: []string{}, Parent: parentOf(from, a)}
	id, running := Process(from.Layout, a)
	switch {
	case running:
		item.State, item.PID = "idle", id.PID
		item.Active = activeSessions(ctx, from, a)
		if len(item.Active) > 0 {
			item.State = "active"
		}
	case serving && isSocket(from.Layout.AgentLink(a)):
		item.State = "listening"
	}
	return item
}

// activeSessions are the sessions of a running agent that have a run now.
func activeSessions(ctx context.Context, from *caller.Caller, a libctx.Agent) []string {
	active := []string{}
	place, err := from.Place(a)
	if err != nil {
		return active
	}
	infos, err := place.List()
	if err != nil {
		return active
	}
	for _, info := range infos {
		if info.State != "active" {
			continue
		}
		if s, err := ask(ctx, from, a, info.Session); err == nil && s.Run != "" {
			active = append(active, string(info.Session))
		}
	}
	return active
}

// parentOf is the agent that made this one, "" if a person did.
func parentOf(from *caller.Caller, a libctx.Agent) libctx.Agent {
	text, err := tree.GetControl(from.Layout, a, "parent")
	if err != nil {
		return ""
	}
	p, err := control.ParseParent(text)
	if err != nil {
		return ""
	}
	return p.Agent
}

func isSocket(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&os.ModeSocket != 0
}

// placed is a listing with its place in the tree of parents.
type placed struct {
	Listing
	indent string
}

// arrange puts children below their parents. An agent whose parent is gone, or
// that is its own ancestor, stands at the top.
func arrange(list []Listing, asTree bool) []placed {
	out := make([]placed, 0, len(list))
	if !asTree {
		for _, item := range list {
			out = append(out, placed{item, ""})
		}
		return out
	}
	known := make(map[libctx.Agent]bool, len(list))
	for _, item := range list {
		known[item.Agent] = true
	}
	done := make(map[libctx.Agent]bool, len(list))
	var below func(parent libctx.Agent, depth int)
	add := func(item Listing, depth int) {
		if !done[item.Agent] {
			done[item.Agent] = true
			out = append(out, placed{item, strings.Repeat("  ", depth)})
			below(item.Agent, depth+1)
		}
	}
	below = func(parent libctx.Agent, depth int) {
		for _, item := range list {
			if item.Parent == parent {
				add(item, depth)
			}
		}
	}
	for _, item := range list {
		if item.Parent == "" || !known[item.Parent] {
			add(item, 0)
		}
	}
	for _, item := range list { // what only cycles reach
		add(item, 0)
	}
	return out
}
