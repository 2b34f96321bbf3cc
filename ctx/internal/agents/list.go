package agents

import (
	"context"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/view"
)

// Entry is one agent of `ctx agent ls`.
type Entry struct {
	Agent libctx.Agent  `json:"agent"`
	Kind  string        `json:"kind"` // "exec", "model" or "refused"
	Model libctx.Model  `json:"model"`
	Perm  string        `json:"perm"`
	Tools []libctx.Tool `json:"tools"` // called directly
	Error string        `json:"error"` // why its files are refused, "" if they are not
}

// List lists the agents of the tree, those too whose files are refused.
func List(_ context.Context, from *caller.Caller) error {
	agents, err := tree.ListAgents(from.Layout)
	if err != nil {
		return err
	}
	var rows []output.Row
	for _, a := range agents {
		e := entryOf(from, a)
		rows = append(rows, output.Row{
			Cells:  []string{string(e.Agent), e.Kind, string(e.Model), e.Perm, strings.Join(names(e.Tools), " ")},
			Object: e,
		})
		if e.Error != "" {
			from.Warn(e.Error)
		}
	}
	return from.Table([]string{"AGENT", "KIND", "MODEL", "PERM", "TOOLS"}, rows)
}

func entryOf(from *caller.Caller, a libctx.Agent) Entry {
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return Entry{Agent: a, Kind: "refused", Tools: []libctx.Tool{}, Error: err.Error()}
	}
	e := Entry{Agent: a, Kind: "model", Model: v.Model, Perm: v.Perm.String(), Tools: append([]libctx.Tool{}, v.Declared...)}
	if v.Executable {
		e.Kind = "exec"
	}
	return e
}

func names[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
