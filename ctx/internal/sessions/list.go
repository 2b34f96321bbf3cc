// Package sessions is what ctx reads of an agent's sessions: the list of them,
// their conversations, and what they used. It starts nothing.
package sessions

import (
	"fmt"
	"strconv"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// Entry is one session of `ctx agent sessions`.
type Entry struct {
	Session   libctx.Session `json:"session"`
	Current   bool           `json:"current"`
	State     string         `json:"state"`
	Updated   string         `json:"updated"` // RFC 3339, "" if unknown
	Turns     int64          `json:"turns"`
	Tokens    *int64         `json:"tokens"` // null: unknown
	Cost      *int64         `json:"cost_picodollars"`
	Complete  bool           `json:"complete"` // else the two are lower bounds
	Workspace string         `json:"workspace"`
	Damage    string         `json:"damage"` // "" if none
}

// List lists the sessions of an agent, newest first.
func List(from *caller.Caller, a libctx.Agent) error {
	place, err := from.Place(a)
	if err != nil {
		return err
	}
	infos, err := place.List()
	if err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	current, err := from.Session(a, "")
	if err != nil {
		return err
	}
	models := modelled(from, a)
	var rows []output.Row
	for _, info := range infos {
		e := Entry{
			Session: info.Session, Current: info.Session == current, State: info.State, Turns: info.Turns,
			Workspace: info.Workspace, Damage: info.Damage,
		}
		u := usedBy(place, info, models)
		e.count(&u)
		updated := ""
		if !info.Updated.IsZero() {
			e.Updated = info.Updated.UTC().Format(time.RFC3339)
			updated = info.Updated.Local().Format(time.DateTime)
		}
		rows = append(rows, output.Row{
			Cells: []string{string(e.Session), e.State, updated, strconv.FormatInt(e.Turns, 10),
				u.number(all(u.tokens)), u.money(), e.Workspace},
			Object: e,
		})
		if e.Damage != "" {
			from.Warn(fmt.Sprintf("session %s: %s", e.Session, e.Damage))
		}
	}
	return from.Table([]string{"SESSION", "STATE", "UPDATED", "TURNS", "TOKENS", "COST", "WORKSPACE"}, rows)
}

// usedBy is what a session used. Of one that can not be read to its end, that
// which could be. Only where a model drives the agent must the ledger be read for
// it: see account.
func usedBy(place session.Place, info session.Info, models bool) (total use) {
	if !models && info.Damage == "" {
		return sumOf(info)
	}
	r, err := place.Read(info.Session)
	if err != nil {
		return use{unknown: 1}
	}
	defer r.Close()
	runs, err := account(r, models, func(error) { total.unknown++ })
	for _, x := range runs {
		total.join(&x.use)
	}
	if err != nil {
		total.unknown++
	}
	return total
}

// sumOf is what the sums of a session say.
func sumOf(info session.Info) use {
	u := use{tokens: info.Tokens, cost: info.Cost}
	if info.TokensAtLeast {
		u.unknown = 1
	}
	if all(info.Tokens) > 0 || info.CostAtLeast && !info.TokensAtLeast {
		u.requests = 1
	}
	if info.CostAtLeast {
		u.unpriced = u.requests
	}
	if info.Cost > 0 {
		u.requests++ // one of them has a price
	}
	return u
}

// count fills in what the session used.
func (e *Entry) count(u *use) {
	complete, some := u.counted()
	if some {
		e.Tokens = new(all(u.tokens))
	}
	priced, some := u.priced()
	if some {
		e.Cost = new(u.cost)
	}
	e.Complete = complete && priced
}
