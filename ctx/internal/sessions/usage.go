package sessions

import (
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Usage is one line of `ctx agent usage --json`: a run, or behind the runs the
// session.
type Usage struct {
	Kind    string         `json:"kind"` // "run" or "session"
	Session libctx.Session `json:"session"`
	Run     libctx.Run     `json:"run"`     // "" for the session
	Started string         `json:"started"` // RFC 3339
	Outcome string         `json:"outcome"` // "active" as long as a run has none, "" for the session
	Amounts
}

// begins takes note of what a run is.
func (r *run) begins(f wire.Frame) {
	if start, ok := f.(*wire.Start); ok {
		r.tsh = start.Op == "tsh"
	}
}

// modelled reports whether a model drives the agent. Of one whose files are
// refused nobody knows.
func modelled(from *caller.Caller, a libctx.Agent) bool {
	v, err := view.Load(from.Layout, a)
	return err == nil && !v.Executable
}

// PrintUsage prints what the runs of a session used and what that cost, and the
// sums. What is not known is called unknown, and a sum of which a part is not
// known a lower bound.
func PrintUsage(from *caller.Caller, a libctx.Agent, named string) error {
	r, err := read(from, a, named)
	if err != nil {
		return err
	}
	defer r.Close()
	var damage error
	var total use
	runs, err := account(r, modelled(from, a), func(err error) {
		from.Warn(notice(err))
		damage = err
		total.unknown++ // it may have said what something used
	})
	if err != nil {
		return err
	}
	name := r.Info().Session
	var rows []output.Row
	for _, x := range runs {
		total.join(&x.use)
		if x.tsh {
			continue // it asks no model
		}
		u := Usage{Kind: "run", Session: name, Run: x.id, Started: x.started, Outcome: x.outcome, Amounts: x.use.amounts()}
		if u.Outcome == "" {
			u.Outcome = "active"
		}
		rows = append(rows, row(u, string(x.id), &x.use))
	}
	u := Usage{Kind: "session", Session: name, Amounts: total.amounts()}
	if at := r.Info().Created; !at.IsZero() {
		u.Started = at.UTC().Format(time.RFC3339Nano)
	}
	rows = append(rows, row(u, "session", &total))
	if err := from.Table([]string{"RUN", "STARTED", "OUTCOME", "MODEL", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "COST"}, rows); err != nil {
		return err
	}
	return damaged(damage)
}

func row(u Usage, what string, v *use) output.Row {
	started := ""
	if at, err := time.Parse(time.RFC3339Nano, u.Started); err == nil {
		started = at.Local().Format(time.DateTime)
	}
	names := make([]string, len(u.Models))
	for i, m := range u.Models {
		names[i] = string(m)
	}
	t := v.tokens
	return output.Row{Object: u, Cells: []string{
		what, started, u.Outcome, strings.Join(names, " "),
		v.number(t.Input), v.number(t.CacheRead), v.number(t.CacheWrite), v.number(t.Output), v.money(),
	}}
}
