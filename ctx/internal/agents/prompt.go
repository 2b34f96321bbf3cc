package agents

import (
	"path"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
	"cortexfs.org/libctx/workspace"
)

// PromptOptions are the flags of `ctx agent prompt`.
type PromptOptions struct {
	Session   string // whose loaded tools are shown; "": none's
	Workspace string // host directory, may be relative; "": the caller's
	Cwd       string // inside path; "": as the agent's control says
}

// Prompted is what `ctx agent prompt --json` prints.
type Prompted struct {
	Agent  libctx.Agent     `json:"agent"`
	Model  libctx.Model     `json:"model"`         // "" if the agent may ask none
	Window *uint32          `json:"window_tokens"` // null: unknown
	System string           `json:"system"`
	Tools  []modelwire.Tool `json:"tools"`
}

// Prompt prints the system message that a run of a model agent would send, made
// by the same code and read with the rights of the agent's owner. It starts
// nothing. What is left out, and models that would be passed over, are told
// beside it.
func Prompt(from *caller.Caller, a libctx.Agent, o PromptOptions) error {
	if _, err := from.Place(a); err != nil {
		return err
	}
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return err
	}
	if v.Executable {
		return errdefs.New(errdefs.Invalid, "agent %s: is a program, and no model is sent a prompt", a).
			WithHint("ctx agent show %s prints its controls", a)
	}
	cwd := v.Cwd
	if o.Cwd != "" {
		cwd = o.Cwd
	}
	if !path.IsAbs(cwd) {
		return errdefs.New(errdefs.Invalid, "cwd %q: is not an absolute path as seen inside", cwd)
	}
	ws, err := workspaceOf(from, v, o.Workspace)
	if err != nil {
		return err
	}
	c := chosen(from, v, func(name libctx.Model, err error) {
		from.Warn("model " + string(name) + " would be passed over: " + err.Error())
	})
	loaded, err := loadedTools(from, v, o.Session, c.Window)
	if err != nil {
		return err
	}
	tools, native, err := preamble.Native(from.Layout, v)
	if err != nil {
		return err
	}
	around, warnings := preamble.Look(from.Layout, v, ws, cwd)
	for _, w := range warnings {
		from.Warn("left out: " + w.String())
	}
	text, err := around.System(v, c.Window, native, loaded, prompt.NoHistory)
	if err != nil {
		return err
	}
	if !from.JSON {
		return from.Exact(text)
	}
	p := Prompted{Agent: a, System: text, Tools: tools}
	if c.Model != nil {
		p.Model = c.Model.ID
	}
	if c.Window.Known() {
		p.Window = new(uint32(c.Window))
	}
	return from.Object(p)
}

// workspaceOf is the workspace that is meant. The caller's directory may be one
// that can be none, as long as nobody named it.
func workspaceOf(from *caller.Caller, v *view.Agent, dir string) (sandbox.Workspace, error) {
	named := dir != ""
	if named || from.Config.Cwd != "" {
		dir = from.Abs(dir)
	}
	ws, err := workspace.Resolve(dir, v.Owner, from.Layout.Protected(), v.Protection())
	if err != nil && !named {
		from.Warn("no workspace is looked at: " + err.Error())
		return sandbox.Workspace{}, nil
	}
	return ws, err
}

// loadedTools is the text about the tools that are loaded in a session.
func loadedTools(from *caller.Caller, v *view.Agent, named string, size window.Size) (string, error) {
	if named == "" {
		return prompt.NoTools, nil
	}
	name, err := libctx.ParseSession(named)
	if err != nil {
		return "", err
	}
	place, err := from.Place(v.Name)
	if err != nil {
		return "", err
	}
	var set toolshell.Set
	err = place.Within(name, func(d *atomicfile.Dir) error {
		text, err := d.ReadFile("context/"+toolshell.SetFile, libctx.MaxLoadedSet)
		if err == nil {
			set, _ = toolshell.Decode(text) // what can not be understood loads nothing
		}
		if errdefs.Is(err, errdefs.NotFound) || errdefs.Is(err, errdefs.TooBig) {
			return nil
		}
		return err
	})
	if errdefs.Is(err, errdefs.NotFound) {
		return "", errdefs.New(errdefs.NotFound, "agent %s: no session %q", v.Name, name).
			WithHint("ctx agent sessions %s lists them", v.Name)
	}
	return set.Context(size.ToolChars()), err
}
