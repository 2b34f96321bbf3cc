package models

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	known "cortexfs.org/libctx/models"
	"cortexfs.org/libctx/price"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/tree"
)

// Entry is one model of `ctx model ls --json`. What nobody knows is null.
type Entry struct {
	Model     libctx.Model   `json:"model"`
	Driver    string         `json:"driver"`
	Cap       []string       `json:"cap"`
	Limit     *uint32        `json:"limit"`      // tokens
	MaxOutput *int64         `json:"max_output"` // tokens
	Aliases   []libctx.Model `json:"aliases"`
	Error     string         `json:"error"` // why its files are refused, "" if they are not
}

// List lists the models of the tree with the aliases that lead to them.
func List(from *caller.Caller) error {
	models, aliases, err := known.List(from.Layout, uint32(os.Geteuid()))
	if errdefs.Is(err, errdefs.NotFound) {
		return errdefs.New(errdefs.NotFound, "no tree at %s, or one without models", from.Layout.Root).WithHint("make one: ctx init")
	}
	if err != nil {
		return err
	}
	names := map[libctx.Model][]libctx.Model{}
	hidden := map[libctx.Model]bool{}
	for _, a := range aliases {
		switch {
		case a.Err != nil:
			from.Warn(a.Err.Error())
		case hidden[a.Name]: // a user's own of the name goes before the tree's
		default:
			names[a.Target] = append(names[a.Target], a.Name)
		}
		hidden[a.Name] = true
	}
	var rows []output.Row
	for _, m := range models {
		e := entryOf(m)
		e.Aliases = append(e.Aliases, names[m.ID]...)
		delete(names, m.ID)
		if e.Error != "" {
			from.Warn(e.Error)
		}
		rows = append(rows, output.Row{Object: e, Cells: []string{
			string(e.Model), e.Driver, number(e.Limit), number(e.MaxOutput), strings.Join(e.Cap, " "), join(e.Aliases),
		}})
	}
	for _, target := range slices.Sorted(maps.Keys(names)) {
		from.Warn("alias " + join(names[target]) + ": leads to " + string(target) + ", which is not there")
	}
	return from.Table([]string{"MODEL", "DRIVER", "LIMIT", "OUTPUT", "CAN", "ALIASES"}, rows)
}

func entryOf(m known.Entry) Entry {
	e := Entry{Model: m.ID, Cap: []string{}, Aliases: []libctx.Model{}}
	if m.Err != nil {
		e.Error = m.Err.Error()
		return e
	}
	e.Driver, e.Cap = m.Model.Driver, append(e.Cap, m.Model.Cap...)
	if m.Model.Limit.Known() {
		e.Limit = new(uint32(m.Model.Limit))
	}
	if m.Model.MaxOutput > 0 {
		e.MaxOutput = new(m.Model.MaxOutput)
	}
	return e
}

func number[T uint32 | int64](n *T) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(int64(*n), 10)
}

func join(list []libctx.Model) string {
	words := make([]string, len(list))
	for i, m := range list {
		words[i] = string(m)
	}
	return strings.Join(words, " ")
}

// Shown is what `ctx model show --json` prints.
type Shown struct {
	Entry
	Effort   string            `json:"effort"`
	Default  map[string]string `json:"default"`
	Fallback []libctx.Model    `json:"fallback"`
	Price    string            `json:"price"` // "" if it is not known
	Agents   []libctx.Agent    `json:"agents"`
}

// Show prints one model, by its name or an alias, and the agents that use it.
func Show(from *caller.Caller, name string) error {
	m, err := find(from, name)
	if err != nil {
		return err
	}
	s := Shown{
		Entry: entryOf(known.Entry{ID: m.ID, Model: m}), Effort: m.Effort, Default: map[string]string{},
		Fallback: append([]libctx.Model{}, m.Fallback...), Price: priceOf(m.ID), Agents: []libctx.Agent{},
	}
	_, aliases, err := known.List(from.Layout, uint32(os.Geteuid()))
	if err != nil {
		return err
	}
	for _, a := range aliases {
		if a.Target == m.ID {
			s.Aliases = append(s.Aliases, a.Name)
		}
	}
	var options []string
	for _, key := range slices.Sorted(maps.Keys(m.Default)) {
		s.Default[key] = m.Default[key]
		options = append(options, key+"="+m.Default[key])
	}
	uses, err := tree.ModelUses(from.Layout)
	if err != nil {
		return err
	}
	var agents []string
	for _, u := range uses {
		if u.ID == m.ID {
			s.Agents = append(s.Agents, u.Agent)
			agents = append(agents, string(u.Agent))
		}
	}
	price := s.Price
	if price == "" {
		price = "unknown"
	}
	return from.Record(s, "model", string(m.ID), "driver", m.Driver, "can", strings.Join(m.Cap, " "),
		"limit", number(s.Limit), "max_output", number(s.MaxOutput), "effort", m.Effort,
		"default", strings.Join(options, " "), "fallback", join(m.Fallback), "aliases", join(s.Aliases),
		"price", price, "agents", strings.Join(agents, " "))
}

// priceOf is what a million tokens cost, "" if nobody knows.
func priceOf(m libctx.Model) string {
	const million = 1_000_000
	in, known := price.Cost(m, session.Tokens{Input: million})
	out, also := price.Cost(m, session.Tokens{Output: million})
	if !known || !also {
		return ""
	}
	return fmt.Sprintf("$%.2f in, $%.2f out for a million tokens", float64(in)/1e12, float64(out)/1e12)
}
