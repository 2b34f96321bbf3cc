// Package tools is what ctx says about tools: which there are, where they are,
// what they do, and what admission thinks of a call.
package tools

import (
	"os"
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
)

// Entry is one tool of a listing.
type Entry struct {
	Name        libctx.Tool    `json:"tool"`
	Path        string         `json:"path"` // host path
	Effect      control.Effect `json:"effect"`
	Description string         `json:"description"`
}

// OfAgentEntry is one tool on an agent's path.
type OfAgentEntry struct {
	Entry
	Direct  bool       `json:"direct"`  // can be called without tsh
	Allowed bool       `json:"allowed"` // some call of it would be admitted
	Code    admit.Code `json:"code"`    // why none would, "" if Allowed
	Reason  string     `json:"reason"`
}

// searchPath is where the caller's own tools are: CTX_PATH, else the usual
// places, as host directories.
func searchPath(from *caller.Caller) ([]string, error) {
	inside, err := toolshell.SearchPath(toolshell.Sources{Process: from.Config.CTXPath, UID: uint32(os.Geteuid())})
	if err != nil {
		return nil, err
	}
	dirs := make([]string, len(inside))
	for i, d := range inside {
		dirs[i] = from.Layout.HostPath(d)
	}
	return dirs, nil
}

// OfAgent lists the tools on an agent's path and what admission says of each.
func OfAgent(l paths.Layout, v *view.Agent) ([]OfAgentEntry, error) {
	names, err := v.Tools(l)
	if err != nil {
		return nil, err
	}
	var list []OfAgentEntry
	for _, name := range names {
		t, err := v.Lookup(l, name)
		if err != nil {
			return nil, err
		}
		t.Close()
		e := OfAgentEntry{
			Entry:  Entry{Name: name, Path: l.HostPath(t.Path), Effect: t.Effect, Description: t.Description},
			Direct: name == admit.Shell || slices.Contains(v.Declared, name),
		}
		standing := admit.Standing(v.Facts(), t.Tool)
		e.Allowed, e.Code, e.Reason = standing.OK, standing.Code, standing.Reason
		list = append(list, e)
	}
	return list, nil
}

// List lists tools: the caller's, or with an agent the ones it could call.
func List(from *caller.Caller, agent string) error {
	var entries []Entry
	if agent != "" {
		a, err := libctx.ParseAgent(agent)
		if err != nil {
			return err
		}
		v, err := view.Load(from.Layout, a)
		if err != nil {
			return err
		}
		list, err := OfAgent(from.Layout, v)
		if err != nil {
			return err
		}
		for _, t := range list {
			if t.Allowed {
				entries = append(entries, t.Entry)
			}
		}
	} else {
		dirs, err := searchPath(from)
		if err != nil {
			return err
		}
		found, err := toolshell.List(dirs)
		if err != nil {
			return err
		}
		for _, t := range found {
			entries = append(entries, describe(t.Name, t.Hit))
		}
	}
	var rows []output.Row
	for _, e := range entries {
		rows = append(rows, output.Row{Cells: []string{string(e.Name), string(e.Effect), brief(e.Description)}, Object: e})
	}
	return from.Table([]string{"TOOL", "EFFECT", "DESCRIPTION"}, rows)
}

// brief is the first sentence of a description.
func brief(text string) string {
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}

// describe reads what a tool's files say of it. Files that do not parse say
// nothing.
func describe(name libctx.Tool, hit toolshell.Hit) Entry {
	e := Entry{Name: name, Path: hit.Path, Effect: "unknown"}
	if text, err := hit.Read("effect"); err == nil {
		if effect, err := control.ParseEffectFile([]byte(text)); err == nil {
			e.Effect = effect
		}
	}
	if text, err := hit.Read("description"); err == nil {
		e.Description, _, _ = strings.Cut(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	}
	return e
}
