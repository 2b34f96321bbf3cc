package cli

import (
	"path"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/settings"
)

// List implements toolshell.Catalog: the tools on the path in force.
func (sh *shell) List() ([]toolshell.Item, error) {
	dirs, err := sh.dirs()
	if err != nil {
		return nil, err
	}
	return dirs.List()
}

// Find implements toolshell.Catalog.
func (sh *shell) Find(name libctx.Tool) (toolshell.Item, error) {
	dirs, err := sh.dirs()
	if err != nil {
		return toolshell.Item{}, err
	}
	return dirs.Find(name)
}

// catalog is where tools are found: those of the agent, else all on the path.
func (sh *shell) catalog() toolshell.Catalog {
	if sh.agent != nil {
		return sh.agent
	}
	return sh
}

// search is the path in force, as seen inside.
func (sh *shell) search() ([]string, error) {
	src := toolshell.Sources{InAgent: sh.conf.Agent != "", Process: sh.conf.Path, UID: uint32(sh.conf.Paths.UID)}
	if !src.InAgent {
		var err error
		if src.Tshrc, err = sh.startFile(); err != nil {
			return nil, err
		}
	}
	return toolshell.SearchPath(src)
}

// dirs are the host directories of the path in force.
func (sh *shell) dirs() (toolshell.Dirs, error) {
	dirs, err := sh.search()
	if err != nil {
		return nil, err
	}
	for i, d := range dirs {
		dirs[i] = sh.layout.HostPath(d)
	}
	return dirs, nil
}

// startFile is the path that .tshrc in CTX_HOME sets, nil if there is no file or
// it sets none.
func (sh *shell) startFile() ([]string, error) {
	home := sh.layout.Home(uint32(sh.conf.Paths.UID))
	if sh.conf.Home != "" {
		home = sh.layout.HostPath(sh.conf.Home)
	}
	text, err := read(home, toolshell.StartFile, libctx.MaxControlFile)
	if text == nil || err != nil {
		return nil, err
	}
	dirs, set, err := control.ParseTshrc(text)
	if !set || err != nil {
		return nil, err
	}
	return dirs, nil
}

// config is the settings beside the tool tsh on the path in force.
func (sh *shell) config() (settings.Config, error) {
	dirs, err := sh.dirs()
	if err != nil {
		return settings.Config{}, err
	}
	hit, found, err := toolshell.Lookup(dirs, "tsh")
	if err != nil || !found {
		return settings.Default(), err
	}
	text, err := hit.Read(settings.File)
	if err != nil {
		return settings.Config{}, err
	}
	c, err := settings.Parse([]byte(text))
	if err != nil {
		err = errdefs.New(errdefs.KindOf(err), "%s/%w", hit.Control(), err)
	}
	return c, err
}

// kept is the set of the agent's session if this is a process of an agent, nil
// outside of agents.
func (sh *shell) kept() toolshell.Store {
	name, err := libctx.ParseSession(sh.conf.Session)
	if sh.conf.Agent == "" || err != nil {
		return nil
	}
	return shown{path.Join(paths.InHome, "session", string(name), "context")}
}

// shown is the set of a session as its sandboxes see it: read-only.
type shown struct{ dir string }

// Load implements toolshell.Store. A file that says nothing that can be
// understood is no file.
func (s shown) Load() (toolshell.Set, error) {
	text, err := read(s.dir, toolshell.SetFile, libctx.MaxLoadedSet)
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

// read is the text of a file, nil if it or its directory is not there.
func read(dir, file string, max int64) ([]byte, error) {
	d, err := atomicfile.OpenDir(dir)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	text, err := d.ReadFile(file, max)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
		return nil, nil
	case err == nil && text == nil:
		text = []byte{}
	}
	return text, err
}
