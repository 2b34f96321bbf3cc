package view

import (
	"errors"
	"io/fs"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Inside is an agent as a process in one of its own sandboxes sees it at one
// moment: the control files and tools below a /ctx that is mounted read-only.
// Whose files these are can not be told there, since everybody but the agent
// itself is nobody; the mount answers for them. Nothing that is not on a read-only
// mount, is reached by a link, or could be written by others is believed. Close
// it.
type Inside struct {
	agent *Agent
	root  *atomicfile.Dir
}

// OpenInside reads the agent from the control files below root, which is
// paths.InRoot but in tests of those who show it elsewhere. Its tools are those
// on search, inside directories in order, as far as the path control still has
// them; search nil is that control.
//
// Errors are those of Load, and errdefs.Unavailable if root is not mounted
// read-only: this is no sandbox of an agent.
func OpenInside(root string, name libctx.Agent, search []string) (*Inside, error) {
	dir, err := atomicfile.OpenDir(root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", root, bare(err))
	}
	in := &Inside{root: dir}
	if !readOnly(dir) {
		in.Close()
		return nil, errdefs.New(errdefs.Unavailable, "%s is not mounted read-only: this is no sandbox of an agent", root)
	}
	if in.agent, err = in.load(name); err != nil {
		in.Close()
		return nil, refused(name, err)
	}
	if search != nil {
		allowed := in.agent.Path
		in.agent.Path = slices.DeleteFunc(slices.Clone(search), func(d string) bool { return !slices.Contains(allowed, d) })
	}
	return in, nil
}

// IsInside reports whether root is mounted read-only, as a sandbox of an agent has
// it.
func IsInside(root string) bool {
	dir, err := atomicfile.OpenDir(root)
	if err != nil {
		return false
	}
	defer dir.Close()
	return readOnly(dir)
}

// Close closes the tree.
func (in *Inside) Close() error { return in.root.Close() }

// Facts is what admission needs of the agent.
func (in *Inside) Facts() admit.Agent { return in.agent.Facts() }

// load reads the control files. Who the agent is, the kernel says: the process
// itself.
func (in *Inside) load(name libctx.Agent) (*Agent, error) {
	self := asuser.Self().UID
	c := &controls{dir: "agent/" + string(name) + ".d", owner: self, text: map[string][]byte{}}
	dir, err := openControl(paths.Layout{Root: in.root.Path()}, in.root, c.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := mounted(dir, c.dir); err != nil {
		return nil, err
	}
	says := []string{"owner", "uid", "gid", "groups"}
	files, err := list(dir, ".", func(file string) bool {
		return known(agentFiles, file) && !slices.Contains(kept, file) && !slices.Contains(says, file) && !promptText(file)
	})
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", c.dir, bare(err))
	}
	for _, f := range files {
		name := c.dir + "/" + f.name
		text, st, err := dir.ReadStat(f.name, libctx.MaxControlFile)
		switch {
		case err == nil && st.Mode&0o022 != 0:
			return nil, loose(name, &st)
		case err == nil:
			c.text[f.name] = text
		case errors.Is(err, fs.ErrNotExist): // removed since it was listed
		default:
			return nil, blame(dir, f.name, name, err)
		}
	}
	return c.agent(paths.Layout{Root: in.root.Path()}, name)
}

// Tools lists the names that the directories of the path hold, sorted, each once.
// Not every name need be a tool: Lookup tells.
func (in *Inside) Tools() ([]libctx.Tool, error) {
	var all []libctx.Tool
	for _, at := range in.agent.Path {
		err := in.agent.within(in.root, at, func(d *atomicfile.Dir) error {
			found, err := names(d)
			for _, name := range found {
				if t, err := libctx.ParseTool(name); err == nil {
					all = append(all, t)
				}
			}
			return err
		})
		if err != nil && !passedOver(err) {
			return nil, errdefs.New(errdefs.KindOf(err), "%s: %w", at, bare(err))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Lookup is Agent.Lookup for what is seen inside. The caller closes the tool.
func (in *Inside) Lookup(name libctx.Tool) *Tool {
	fallback := ""
	for _, at := range in.agent.Path {
		var st unix.Stat_t
		err := in.agent.within(in.root, at, func(d *atomicfile.Dir) (err error) {
			st, err = d.Lstat(string(name))
			return err
		})
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err == nil && isHit(&st):
			return in.read(at, name)
		case fallback == "":
			fallback = at
		}
	}
	if fallback == "" {
		return &Tool{Tool: admit.Tool{Name: name}}
	}
	return in.read(fallback, name)
}

// read opens and reads the tool in one directory. All of it must belong to whom
// the directory belongs, whoever that is outside.
func (in *Inside) read(at string, name libctx.Tool) *Tool {
	t := &Tool{Tool: admit.Tool{Name: name, Path: at + "/" + string(name)}, text: map[string][]byte{}}
	return t.judge(in.agent.within(in.root, at, func(d *atomicfile.Dir) error {
		if err := mounted(d, at); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(d.FD(), &st); err != nil {
			return err
		}
		return t.read(d, st.Uid)
	}))
}

// mounted says why a directory is not to be believed, or nil: the mount it is on
// must be read-only.
func mounted(d *atomicfile.Dir, name string) error {
	if readOnly(d) {
		return nil
	}
	return distrust(errdefs.New(errdefs.Denied, "%s: is not mounted read-only", name))
}

func readOnly(d *atomicfile.Dir) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(d.FD(), &fs) == nil && fs.Flags&unix.MS_RDONLY != 0
}
