package sessions

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
)

// Changed is one path of `ctx agent changes`, as the last run that changed it left
// it.
type Changed struct {
	Workspace  string     `json:"workspace"` // host directory
	Path       string     `json:"path"`      // relative to it; a Go string literal if it is not plain
	Kind       string     `json:"kind"`
	What       string     `json:"what"` // "created" if any run of the session created it
	Listed     bool       `json:"listed"`
	Executable bool       `json:"executable"`
	Below      int        `json:"below"` // paths below a new directory that are not listed
	Exact      bool       `json:"exact"`
	Beside     bool       `json:"beside"`
	Run        libctx.Run `json:"run"`
	When       string     `json:"when"` // RFC 3339, when the run ended
}

// changed is what the runs of a session changed.
type changed struct {
	order []*Changed
	by    map[[2]string]*Changed
	notes []string // what is not known
	open  map[libctx.Run]bool
}

// Changes lists what a session changed in its workspaces: each path once, what a
// person should look at first.
func Changes(from *caller.Caller, a libctx.Agent, named string) error {
	r, err := read(from, a, named)
	if err != nil {
		return err
	}
	defer r.Close()
	all := changed{by: map[[2]string]*Changed{}, open: map[libctx.Run]bool{}}
	var damage error
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if line.Err != nil {
			damage = line.Err
			from.Warn(notice(line.Err))
		}
		all.record(line.Record)
	}
	var marked, others []output.Row
	for _, c := range all.order {
		if c.Listed || c.Executable {
			marked = append(marked, c.row())
		} else {
			others = append(others, c.row())
		}
	}
	if err := from.Table([]string{"WORKSPACE", "PATH", "WHAT", "LOOK AT IT", "WHEN"}, append(marked, others...)); err != nil {
		return err
	}
	for _, note := range all.notes {
		from.Warn(note)
	}
	return damaged(damage)
}

// record takes what one record of the ledger says.
func (all *changed) record(rec session.Record) {
	switch rec := rec.(type) {
	case *session.Fact:
		switch f := rec.Frame.(type) {
		case *wire.Start:
			all.open[rec.Run] = true
		case *wire.Changes:
			delete(all.open, rec.Run)
			all.add(rec, f)
		}
	case *session.Checkpoint:
		if rec.Outcome == session.Interrupted && all.open[rec.Run] {
			all.notes = append(all.notes, fmt.Sprintf("run %s: its host died, and what it changed is not known", rec.Run))
		}
		delete(all.open, rec.Run)
	}
}

func (all *changed) add(rec *session.Fact, f *wire.Changes) {
	for _, p := range f.Paths {
		key := [2]string{f.Workspace, p.Path}
		c := all.by[key]
		if c == nil {
			c = &Changed{}
			all.by[key] = c
			all.order = append(all.order, c)
		}
		what := p.What
		if c.What == wire.Created {
			what = c.What
		}
		*c = Changed{
			Workspace: f.Workspace, Path: p.Path, Kind: p.Kind, What: what, Listed: p.Listed, Executable: p.Executable, Below: p.Below,
			Exact: f.Exact, Beside: f.Beside, Run: rec.Run, When: rec.TS,
		}
	}
	if f.More > 0 {
		all.notes = append(all.notes, fmt.Sprintf("run %s changed %d paths more, which are not recorded", rec.Run, f.More))
	}
	if len(f.Incomplete) > 0 {
		all.notes = append(all.notes, fmt.Sprintf("run %s: there may be more: of %s, %s", rec.Run, f.Workspace, render.Incomplete(f.Incomplete)))
	}
	if f.Beside {
		all.notes = append(all.notes, fmt.Sprintf("run %s: another run worked in %s at the same time; what that changed is listed too", rec.Run, f.Workspace))
	}
}

// row is a path as a line of the table.
func (c *Changed) row() output.Row {
	name := c.Path
	if c.Kind == "dir" {
		name = strings.TrimSuffix(name, "/") + "/"
	}
	what := c.What
	if c.Below > 0 {
		what += fmt.Sprintf(", with %d below", c.Below)
	}
	when := c.When
	if at, err := time.Parse(time.RFC3339Nano, c.When); err == nil {
		when = at.Local().Format(time.DateTime)
	}
	mark := render.Mark(wire.Change{Listed: c.Listed, Executable: c.Executable})
	return output.Row{Object: c, Cells: []string{inert.Line(c.Workspace), inert.Line(name), what, mark, when}}
}
