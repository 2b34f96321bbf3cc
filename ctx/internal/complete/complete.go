// Package complete knows what the words of a command line can be: the names that
// the commands of ctx list. It asks files only, starts nothing and complains of
// nothing: who presses TAB wants names or silence.
package complete

import (
	"bytes"
	"context"
	"strings"

	"cortexfs.org/ctx/internal/agents"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/models"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/providers"
	"cortexfs.org/ctx/internal/terminals"
	"cortexfs.org/ctx/internal/tools"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/provider"
)

// Candidate is something a word can be.
type Candidate struct {
	Word string
	Note string // a few words for people; may be empty
}

// The words that stand for paths: the shell knows those.
const (
	Files       = ":files"
	Directories = ":directories"
)

// fixed are values that are a few words.
var fixed = map[string]string{
	"SCOPE": "private temp",
	"WHO":   "auto systemd direct",
	"FILE":  Files, "PATH": Files, "DIR": Directories,
}

// Of is what a word of a kind can be. kind is what help calls it: AGENT, TOOL,
// DIR. agent is the agent that the line names; it may be empty.
func Of(ctx context.Context, from *caller.Caller, kind, agent string) []Candidate {
	if few, ok := fixed[kind]; ok {
		return words(strings.Fields(few))
	}
	switch kind {
	case "AGENT":
		return listed(from, 1, func(from *caller.Caller) error { return agents.List(ctx, from) })
	case "S":
		return sessions(from, agent)
	case "TOOL":
		return listed(from, 2, func(from *caller.Caller) error { return tools.List(from, agent) })
	case "MODEL":
		return listed(from, 1, models.List)
	case "PROVIDER":
		return listed(from, 1, providers.List)
	case "TERMINAL":
		return listed(from, 3, func(from *caller.Caller) error { return terminals.List(ctx, from) })
	case "CONTROL":
		return words(control.AgentFiles())
	case "PRESET":
		var names []string
		for _, p := range provider.Presets() {
			names = append(names, p.Name)
		}
		return words(names)
	}
	return nil
}

func words(names []string) []Candidate {
	var all []Candidate
	for _, name := range names {
		all = append(all, Candidate{Word: name})
	}
	return all
}

// listed are the names a listing begins its lines with, and the cell that tells
// them apart best.
func listed(from *caller.Caller, note int, list func(*caller.Caller) error) []Candidate {
	var out, errs bytes.Buffer
	quiet := *from
	quiet.Printer = &output.Printer{Out: &out, Err: &errs}
	if list(&quiet) != nil {
		return nil
	}
	var all []Candidate
	for line := range strings.Lines(out.String()) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		c := Candidate{Word: cells[0]}
		if note < len(cells) {
			c.Note = cells[note]
		}
		all = append(all, c)
	}
	return all
}

func sessions(from *caller.Caller, agent string) []Candidate {
	a, err := libctx.ParseAgent(agent)
	if err != nil {
		return nil
	}
	place, err := from.Place(a)
	if err != nil {
		return nil
	}
	infos, err := place.List()
	if err != nil {
		return nil
	}
	var all []Candidate
	for _, i := range infos {
		all = append(all, Candidate{string(i.Session), i.State})
	}
	return all
}
