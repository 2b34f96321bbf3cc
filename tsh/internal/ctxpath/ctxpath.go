// Package ctxpath is where tsh and its tools look for tools: the path in force
// for the process, and the settings of the tool shell that stand on it.
package ctxpath

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/tsh/internal/config"
)

// Place is a process in a tree.
type Place struct {
	Conf   config.Shell
	Layout paths.Layout
}

// Find finds the tree; flag is what a --root flag says, or empty. Errors are
// those of paths.Find.
func Find(conf config.Shell, flag string) (Place, error) {
	env := conf.Paths
	env.Flag = flag
	layout, err := paths.Find(env)
	return Place{conf, layout}, err
}

// Dirs are the host directories of the path in force, in its order.
func (p Place) Dirs() (toolshell.Dirs, error) {
	src := toolshell.Sources{InAgent: p.Conf.Agent != "", Process: p.Conf.Path, UID: uint32(p.Conf.Paths.UID)}
	if !src.InAgent {
		var err error
		if src.Tshrc, err = p.startFile(); err != nil {
			return nil, err
		}
	}
	dirs, err := toolshell.SearchPath(src)
	if err != nil {
		return nil, err
	}
	for i, d := range dirs {
		dirs[i] = p.Layout.HostPath(d)
	}
	return dirs, nil
}

// startFile is the path that .tshrc in CTX_HOME sets, nil if there is no file or
// it sets none.
func (p Place) startFile() ([]string, error) {
	home := p.Layout.Home(uint32(p.Conf.Paths.UID))
	if p.Conf.Home != "" {
		home = p.Layout.HostPath(p.Conf.Home)
	}
	text, err := Read(home, toolshell.StartFile, libctx.MaxControlFile)
	if text == nil || err != nil {
		return nil, err
	}
	dirs, set, err := control.ParseTshrc(text)
	if !set || err != nil {
		return nil, err
	}
	return dirs, nil
}

// Settings is the settings of the tool shell and the directory they are in, the
// control directory of the tool tsh; dir is empty if the path has no such tool.
// With the error of a file that does not parse dir is set.
func (p Place) Settings() (c control.TshConfig, dir string, err error) {
	dirs, err := p.Dirs()
	if err != nil {
		return c, "", err
	}
	hit, found, err := toolshell.Lookup(dirs, "tsh")
	if err != nil || !found {
		return control.DefaultTshConfig(), "", err
	}
	text, err := hit.Read(control.TshConfigFile)
	if err != nil {
		return c, hit.Control(), err
	}
	if c, err = control.ParseTshConfig([]byte(text)); err != nil {
		err = errdefs.New(errdefs.KindOf(err), "%s/%w", hit.Control(), err)
	}
	return c, hit.Control(), err
}

// Read is the text of a file, nil if it or its directory is not there.
func Read(dir, file string, max int64) ([]byte, error) {
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
