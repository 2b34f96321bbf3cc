package cli

import (
	"path"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/tsh/internal/ctxpath"
)

// List implements toolshell.Catalog: the tools on the path in force.
func (sh *shell) List() ([]toolshell.Item, error) {
	dirs, err := sh.place.Dirs()
	if err != nil {
		return nil, err
	}
	return dirs.List()
}

// Find implements toolshell.Catalog.
func (sh *shell) Find(name libctx.Tool) (toolshell.Item, error) {
	dirs, err := sh.place.Dirs()
	if err != nil {
		return toolshell.Item{}, err
	}
	return dirs.Find(name)
}

func (sh *shell) config() (control.TshConfig, error) {
	c, _, err := sh.place.Settings()
	return c, err
}

// kept is the set of the agent's session if this is a process of an agent, nil
// outside of agents.
func (sh *shell) kept() toolshell.Store {
	name, err := libctx.ParseSession(sh.place.Conf.Session)
	if sh.place.Conf.Agent == "" || err != nil {
		return nil
	}
	return shown{path.Join(paths.InHome, "session", string(name), "context")}
}

// shown is the set of a session as its sandboxes see it: read-only.
type shown struct{ dir string }

// Load implements toolshell.Store. A file that says nothing that can be
// understood is no file.
func (s shown) Load() (toolshell.Set, error) {
	text, err := ctxpath.Read(s.dir, "tsh.json", libctx.MaxLoadedSet)
	if text == nil || err != nil {
		return toolshell.Set{}, err
	}
	set, _ := toolshell.Decode(text)
	return set, nil
}

// Save implements toolshell.Store.
func (shown) Save(toolshell.Set) error {
	return errdefs.New(errdefs.Unavailable, "the tools of a session are loaded by the agent's host, not from inside").
		WithHint("call the tool tsh with the same words")
}
