// Package inside is the tools of the agent in whose terminal tsh runs: which there
// are and whether a command may run one. Every question is answered from the files
// of the agent and of its tools as they are below /ctx at that moment, by the
// functions that decide about the agent's own calls (docs/reference/admission.md).
package inside

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// Agent is a toolshell.Catalog of one agent's tools.
type Agent struct {
	Root   string                   // of the tree, a read-only mount
	Name   libctx.Agent             // of the agent
	Search func() ([]string, error) // the directories of CTX_PATH, as seen inside
	Told   Terminal                 // is told what is decided about commands
}

func (a Agent) open() (*view.Inside, error) {
	search, err := a.Search()
	if err != nil {
		return nil, err
	}
	return view.OpenInside(a.Root, a.Name, search)
}

// List implements toolshell.Catalog.
func (a Agent) List() ([]toolshell.Item, error) {
	in, err := a.open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	names, err := in.Tools()
	if err != nil {
		return nil, err
	}
	var items []toolshell.Item
	for _, name := range names {
		t := in.Lookup(name)
		if t.Kind != admit.Missing {
			item := itemOf(t)
			item.Refused = string(admit.Standing(in.Facts(), t.Tool).Code)
			items = append(items, item)
		}
		t.Close()
	}
	return items, nil
}

// Find implements toolshell.Catalog.
func (a Agent) Find(name libctx.Tool) (toolshell.Item, error) {
	in, err := a.open()
	if err != nil {
		return toolshell.Item{}, err
	}
	defer in.Close()
	t := in.Lookup(name)
	defer t.Close()
	if v := admit.Standing(in.Facts(), t.Tool); !v.OK {
		return toolshell.Item{}, refused(string(name), v.Code, v.Reason)
	}
	return itemOf(t), nil
}

// itemOf is what a shell shows of a tool.
func itemOf(t *view.Tool) toolshell.Item {
	schema, _ := t.Control("schema") // of one that can not be read a call will tell
	return toolshell.Item{Name: t.Name, Path: t.Path, Description: t.Description, Schema: string(schema)}
}

// Admit decides about a command, the name of a tool and its words, in the directory
// cwd, and returns the inside path of the program it runs. A word that is the name
// of no tool is errdefs.NotFound, a tool that may not be run errdefs.Denied; both
// tell the denial code.
func (a Agent) Admit(words []string, cwd string) (path string, err error) {
	name, err := libctx.ParseTool(words[0])
	if err != nil {
		return "", errdefs.New(errdefs.NotFound, "%w (%s)", err, admit.NotFound)
	}
	args, err := wire.Marshal(struct {
		Args []string `json:"args"`
	}{words})
	if err != nil {
		return "", errdefs.New(errdefs.Denied, "%s: the words are no text (%s)", name, admit.InvalidArguments)
	}
	in, err := a.open()
	if err != nil {
		return "", err
	}
	defer in.Close()
	t := in.Lookup(name)
	defer t.Close()
	d := admit.Decide(in.Facts(), t.Tool, admit.Call{Name: admit.Shell, Arguments: args, Cwd: cwd})
	allowed := d.Allowed || d.Ask // who would be asked has typed it
	a.Told.tell(name, allowed, d)
	if !allowed {
		return "", refused(string(name), d.Code, d.Reason)
	}
	return t.Path, nil
}

func refused(name string, code admit.Code, reason string) error {
	if code == admit.NotFound {
		return errdefs.New(errdefs.NotFound, "%s: no such tool (%s)", name, code).WithHint("tools lists what there is")
	}
	return errdefs.New(errdefs.Denied, "%s: %s (%s)", name, reason, code)
}
