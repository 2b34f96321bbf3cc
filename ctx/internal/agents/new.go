// Package agents is what ctx does with an agent's files: make, list, show,
// change, remove, explain.
package agents

import (
	"context"
	"path/filepath"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/admin"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/tree"
)

// NewOptions are the flags of `ctx agent new`.
type NewOptions struct {
	Exec, Model  string
	Perm         string
	Tools        []string
	Native       []string
	Mounts       []string
	Allow        []string
	SystemPrompt string // a file, "-" for standard input
	Owner        string // a uid or a login name; "" is the caller
}

// New makes an agent. When it returns and an activator runs, the agent's socket
// accepts.
func New(ctx context.Context, from *caller.Caller, name string, o NewOptions) error {
	spec, err := o.spec(from, name)
	if err != nil {
		return err
	}
	if admin.Needed(from.Layout) {
		err = newOwned(ctx, from, spec, o)
	} else {
		err = tree.NewAgent(from.Layout, spec)
	}
	if err != nil {
		return err
	}
	from.Note("made agent " + name)
	if activator.Running(from.Layout) {
		if err := activator.AwaitSocket(ctx, from.Layout, spec.Name); err != nil {
			return err
		}
	}
	if spec.Exec != "" {
		from.Note("try: ctx agent send " + name + " hello")
	}
	return nil
}

func (o NewOptions) spec(from *caller.Caller, name string) (tree.AgentSpec, error) {
	s := tree.AgentSpec{Owner: asuser.Self(), Exec: o.Exec, Allow: o.Allow}
	var err error
	if s.Name, err = libctx.ParseAgent(name); err != nil {
		return s, err
	}
	switch {
	case o.Exec == "" && o.Model == "":
		return s, errdefs.New(errdefs.Invalid, "agent %s: what drives it is missing", name).
			WithHint("name a program with --exec FILE, or a model with --model MODEL")
	case o.Exec != "" && o.Model != "":
		return s, errdefs.New(errdefs.Invalid, "agent %s: --exec and --model exclude each other", name)
	}
	if o.Owner != "" {
		if s.Owner, err = asuser.Named(o.Owner); err != nil {
			return s, err
		}
	}
	if o.Exec != "" && !filepath.IsAbs(o.Exec) {
		s.Exec = filepath.Join(from.Config.Cwd, o.Exec)
	}
	if o.Model != "" {
		if s.Model, err = libctx.ParseModel(o.Model); err != nil {
			return s, err
		}
	}
	if o.Perm != "" {
		p, err := control.ParsePerm(o.Perm)
		if err != nil {
			return s, err
		}
		s.Perm = &p
	}
	if s.Tools, err = toolNames(o.Tools); err != nil {
		return s, err
	}
	if s.Native, err = toolNames(o.Native); err != nil {
		return s, err
	}
	for _, text := range o.Mounts {
		m, err := mount.ParseFlag(text)
		if err != nil {
			return s, err
		}
		s.Mounts = append(s.Mounts, m)
	}
	if o.SystemPrompt != "" {
		text, err := readFile(from, o.SystemPrompt)
		if err != nil {
			return s, err
		}
		s.System = text
	}
	return s, nil
}

func toolNames(names []string) ([]libctx.Tool, error) {
	var list []libctx.Tool
	for _, n := range names {
		t, err := libctx.ParseTool(n)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// Remove stops an agent and removes it; with purge its sessions and data too.
func Remove(ctx context.Context, from *caller.Caller, a libctx.Agent, purge bool) error {
	if _, running := runs.Process(from.Layout, a); running {
		if err := runs.Stop(ctx, from, a, ""); err != nil {
			return err
		}
		if id, running := runs.Process(from.Layout, a); running {
			return errdefs.New(errdefs.Busy, "agent %s: its process %d still runs", a, id.PID)
		}
	}
	var err error
	if admin.Needed(from.Layout) {
		err = ask(ctx, from, adminwire.Request{Op: adminwire.Remove, Agent: a, Purge: purge}, nil)
	} else {
		err = tree.RemoveAgent(from.Layout, a, purge)
	}
	if err != nil {
		return err
	}
	from.Note("removed agent " + string(a))
	return nil
}
