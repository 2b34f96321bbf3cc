package agents

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx/inert"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/ctx/internal/tools"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/view"
)

// Env prints the environment of the agent's processes, one KEY=VALUE a line.
// What differs from run to run is not among it.
func Env(from *caller.Caller, a libctx.Agent) error {
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return err
	}
	env := v.Environ(windowOf(from, v).Env()...)
	if from.JSON {
		object := map[string]string{}
		for _, kv := range env {
			name, value, _ := strings.Cut(kv, "=")
			object[name] = value
		}
		return from.Object(object)
	}
	_, err = io.WriteString(from, inertLines(env))
	return err
}

// Tools lists the tools on the agent's path with what admission says of them.
func Tools(from *caller.Caller, a libctx.Agent) error {
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return err
	}
	list, err := tools.OfAgent(from.Layout, v)
	if err != nil {
		return err
	}
	driven, err := drivenBy(from, v)
	if err != nil {
		return err
	}
	var rows []output.Row
	for _, t := range list {
		if !v.Executable {
			t.Direct = t.Name == admit.Shell || slices.Contains(driven.Native, t.Name)
		}
		state := "allowed"
		if !t.Allowed {
			state = string(t.Code)
		}
		way := "tsh"
		if t.Direct {
			way = "direct"
		}
		rows = append(rows, output.Row{
			Cells:  []string{string(t.Name), state, way, string(t.Effect), t.Path},
			Object: t,
		})
	}
	return from.Table([]string{"TOOL", "ADMISSION", "CALLED", "EFFECT", "PATH"}, rows)
}

// Inspection is what `ctx agent inspect --json` prints.
type Inspection struct {
	Agent   libctx.Agent   `json:"agent"`
	Kind    string         `json:"kind"`
	Entry   string         `json:"entry"`   // host path
	Control string         `json:"control"` // host path
	Home    string         `json:"home"`    // host path
	Subject libctx.Subject `json:"subject"`
	Owner   uint32         `json:"owner"`
	GID     uint32         `json:"gid"`
	Groups  []uint32       `json:"groups"`
	Driven
	Perm     string        `json:"perm"`
	Approval string        `json:"approval"`
	Effects  string        `json:"effects"`
	Network  bool          `json:"network"`
	Life     string        `json:"life"`
	Parent   string        `json:"parent"`
	Path     []string      `json:"path"`
	Cwd      string        `json:"cwd"`
	Policy   []string      `json:"policy"`
	Mounts   []string      `json:"mounts"`
	Declared []libctx.Tool `json:"tools"`
	Admitted []libctx.Tool `json:"admitted"` // tools some call of which could be allowed
	Timeout  string        `json:"timeout"`
	Session  string        `json:"session"` // the current one
	State    string        `json:"state"`   // of that session
	PID      int           `json:"pid"`     // 0: no process serves the agent now
}

// Inspect prints what an agent is, may do and does, as the runtime sees it. It
// starts nothing.
func Inspect(ctx context.Context, from *caller.Caller, a libctx.Agent) error {
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return err
	}
	i := Inspection{
		Agent: a, Kind: "model", Subject: v.Subject,
		Entry: from.Layout.Agent(a), Control: from.Layout.Control(a), Home: from.Layout.AgentHome(v.Owner.UID, a),
		Owner: v.Owner.UID, GID: v.Owner.GID, Groups: append([]uint32{}, v.Owner.Groups...),
		Perm: v.Perm.String(), Approval: v.Approval, Effects: v.Effects, Network: v.Network,
		Life: v.Life, Parent: v.Parent, Path: v.Path, Cwd: v.Cwd, Policy: []string{}, Mounts: []string{},
		Declared: append([]libctx.Tool{}, v.Declared...), Admitted: []libctx.Tool{}, Timeout: v.Timeout.String(),
	}
	if v.Executable {
		i.Kind = "exec"
	}
	if i.Driven, err = drivenBy(from, v); err != nil {
		return err
	}
	for _, r := range v.Policy.Rules {
		i.Policy = append(i.Policy, r.String())
	}
	for _, m := range v.Mounts {
		i.Mounts = append(i.Mounts, m.String())
	}
	list, err := tools.OfAgent(from.Layout, v)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Allowed {
			i.Admitted = append(i.Admitted, t.Name)
		}
	}
	name, err := from.Session(a, "")
	if err != nil {
		return err
	}
	state, err := runs.StateOf(ctx, from, a, name)
	if err != nil && !errdefs.Is(err, errdefs.IO) {
		return err
	}
	i.Session, i.State, i.PID = string(name), state.State, state.PID
	return from.Record(i, i.pairs()...)
}

func (i *Inspection) pairs() []string {
	groups := make([]string, len(i.Groups))
	for n, g := range i.Groups {
		groups[n] = strconv.FormatUint(uint64(g), 10)
	}
	pid := ""
	if i.PID != 0 {
		pid = strconv.Itoa(i.PID)
	}
	pairs := []string{
		"agent", string(i.Agent), "kind", i.Kind, "entry", i.Entry, "control", i.Control, "home", i.Home,
		"subject", string(i.Subject), "owner", strconv.FormatUint(uint64(i.Owner), 10),
		"gid", strconv.FormatUint(uint64(i.GID), 10), "groups", strings.Join(groups, " "),
		"perm", i.Perm, "approval", i.Approval, "effects", i.Effects,
		"network", strconv.FormatBool(i.Network), "life", i.Life, "parent", i.Parent,
		"path", strings.Join(i.Path, ":"), "cwd", i.Cwd, "timeout", i.Timeout,
		"tools", strings.Join(names(i.Declared), " "), "admitted", strings.Join(names(i.Admitted), " "),
		"session", i.Session, "state", i.State, "pid", pid,
	}
	pairs = append(pairs, i.Driven.pairs()...)
	for _, r := range i.Policy {
		pairs = append(pairs, "policy", r)
	}
	for _, m := range i.Mounts {
		pairs = append(pairs, "mount", strings.ReplaceAll(m, "\t", " "))
	}
	return pairs
}

// inertLines joins lines, each inert.
func inertLines(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(inert.Line(l) + "\n")
	}
	return b.String()
}
