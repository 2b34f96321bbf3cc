package cli

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell"
)

// dirs are the host directories of the path in force.
func (sh *shell) dirs() ([]string, error) {
	src := toolshell.Sources{InAgent: sh.conf.Agent != "", Process: sh.conf.Path, UID: uint32(sh.conf.Paths.UID)}
	if !src.InAgent {
		var err error
		if src.Tshrc, err = sh.startFile(); err != nil {
			return nil, err
		}
	}
	dirs, err := toolshell.SearchPath(src)
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
	dir, err := atomicfile.OpenDir(home)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	text, err := dir.ReadFile(toolshell.StartFile, libctx.MaxControlFile)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	path, set, err := control.ParseTshrc(text)
	if !set || err != nil {
		return nil, err
	}
	return path, nil
}

// find is the file of a tool. A name without one is errdefs.NotFound, and says
// what stood in the way if something did.
func (sh *shell) find(word string) (toolshell.Hit, error) {
	name, err := libctx.ParseTool(word)
	if err != nil {
		return toolshell.Hit{}, err
	}
	dirs, err := sh.dirs()
	if err != nil {
		return toolshell.Hit{}, err
	}
	hit, ok, err := toolshell.Lookup(dirs, name)
	if err != nil || ok {
		return hit, err
	}
	if miss, some := hit.Reason(); some {
		return hit, errdefs.New(errdefs.NotFound, "%s: no such tool: %s %s", name, miss.Path, miss.Why)
	}
	return hit, errdefs.New(errdefs.NotFound, "%s: no such tool on CTX_PATH", name).WithHint("tsh tools lists what there is")
}

// read is one control file of a tool, "" if there is none.
func (sh *shell) read(hit toolshell.Hit, file string) (string, error) {
	dir, err := atomicfile.OpenDir(hit.Control())
	if errdefs.Is(err, errdefs.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	text, err := dir.ReadFile(file, libctx.MaxControlFile)
	if errdefs.Is(err, errdefs.NotFound) {
		return "", nil
	}
	return string(text), err
}
