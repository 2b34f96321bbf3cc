package tree

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Init makes the tree at l.Root for the user of this process, or repairs it:
// missing directories, the files of built-in tools and models (of tools that are a
// program of the host, those of programs that are there), the alias main if
// there is none, and the links in bin/ to the programs in bins (name to absolute
// path). Agents, tools of the user, other models, homes and
// everything else that is there stay as they are. It returns what it made or
// repaired, as paths relative to the root, directories with a slash at the end, a
// new tool as one.
//
// A directory that is not a tree and not empty is errdefs.Exists; one that
// belongs to somebody else, or that others may write, is errdefs.Denied.
func Init(l paths.Layout, bins map[string]string) ([]string, error) {
	if err := prepareRoot(l.Root); err != nil {
		return nil, err
	}
	var made []string
	err := inside(l, func(root *atomicfile.Dir) error {
		m := maker{root: root}
		m.dirs(l)
		m.links(bins)
		for _, t := range builtin.Tools() {
			if m.wants(t.Name, program.Offered) {
				m.tool(t)
			}
		}
		for _, s := range debugModels {
			m.model(s)
		}
		m.alias("main", defaultModel)
		m.sync()
		m.file("status", []byte("ready\n"), filePerm, true) // last: with it the directory is a tree
		made = m.made
		return m.err
	})
	return made, err
}

// prepareRoot makes the root directory or says why it can not be one.
func prepareRoot(root string) error {
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return errdefs.New(errdefs.KindOf(err), "tree %s: %w", root, err)
	}
	err := os.Mkdir(root, dirPerm)
	if err == nil {
		err = os.Chmod(root, dirPerm)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return errdefs.New(errdefs.KindOf(err), "tree %s: %w", root, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return errdefs.New(errdefs.KindOf(err), "tree %s: %w", root, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return errdefs.New(errdefs.Exists, "tree %s: is not a directory", root)
	case int(st.Uid) != os.Geteuid():
		return errdefs.New(errdefs.Denied, "tree %s: belongs to uid %d", root, st.Uid).
			WithHint("name a directory of your own: ctx init --root DIR")
	case st.Mode&0o022 != 0:
		return errdefs.New(errdefs.Denied, "tree %s: others may write it (mode %04o)", root, st.Mode&0o7777).
			WithHint("chmod go-w %s", root)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "tree %s: %w", root, err)
	}
	if len(entries) > 0 && !paths.IsTree(root) && !halfMade(entries) {
		return errdefs.New(errdefs.Exists, "tree %s: the directory is not empty and not a tree", root).
			WithHint("name a new directory: ctx init --root DIR")
	}
	return nil
}

// halfMade reports whether a directory holds only what an interrupted Init
// leaves.
func halfMade(entries []fs.DirEntry) bool {
	known := []string{".lock", ".view", "agent", "bin", "home", "model", "shared", "tool"}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) || !e.IsDir() {
			return false
		}
	}
	return true
}

// maker makes one piece after the other, remembers what it made, and does
// nothing more after the first error.
type maker struct {
	root *atomicfile.Dir
	made []string
	err  error
}

func (m *maker) dirs(l paths.Layout) {
	for _, dir := range []string{"agent", "bin", "home", "model", "shared", "tool"} {
		m.dir(dir, dirPerm)
	}
	home := path.Join("home", strconv.Itoa(os.Geteuid()))
	m.dir(home, privatePerm)
	for _, dir := range []string{"agent", "model", "tool"} {
		m.dir(path.Join(home, dir), privatePerm)
	}
	// Views are read by the agents' users, who in system mode are not us.
	if l.System {
		m.dir(".view", dirPerm)
	} else {
		m.dir(".view", privatePerm)
	}
	m.dir(".lock", privatePerm)
}

func (m *maker) dir(rel string, perm fs.FileMode) {
	if m.err != nil {
		return
	}
	_, err := m.root.Lstat(rel)
	if err != nil && !errdefs.Is(err, errdefs.NotFound) {
		m.err = err
		return
	}
	missing := err != nil
	d, err := m.root.MkdirAll(rel, perm)
	if err != nil {
		m.err = err
		return
	}
	d.Close()
	if missing {
		m.made = append(m.made, rel+"/")
	}
}

// file writes a file unless it is there as it must be. With keep, any regular
// file that is there stays.
func (m *maker) file(rel string, data []byte, perm fs.FileMode, keep bool) {
	if m.err != nil {
		return
	}
	st, err := m.root.Lstat(rel)
	switch {
	case errdefs.Is(err, errdefs.NotFound):
	case err != nil:
		m.err = err
		return
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		m.err = errdefs.New(errdefs.Exists, "%s: is a directory where a file should be", rel)
		return
	case st.Mode&unix.S_IFMT == unix.S_IFREG:
		if keep {
			return
		}
		same := st.Mode&0o7777 == uint32(perm) && int(st.Uid) == os.Geteuid() && st.Size == int64(len(data))
		if same {
			if now, err := m.root.ReadFile(rel, st.Size); err == nil && bytes.Equal(now, data) {
				return
			}
		}
	}
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		if m.err = m.root.Remove(rel); m.err != nil { // a link, say
			return
		}
	}
	// Synced once for all of them, before the directory becomes a tree.
	if m.err = m.root.ReplaceLazy(rel, data, perm); m.err == nil {
		m.made = append(m.made, rel)
	}
}

// sync makes everything durable that was made so far.
func (m *maker) sync() {
	if m.err == nil && len(m.made) > 0 {
		if err := unix.Syncfs(m.root.FD()); err != nil {
			m.err = errdefs.New(errdefs.KindOf(err), "sync: %w", err)
		}
	}
}

// wants reports whether a built-in tool belongs into this tree: one that is a
// program of the host only if that is there, or if it was when the tool came; then
// the tool itself says what is missing.
func (m *maker) wants(name libctx.Tool, offered func(libctx.Tool) bool) bool {
	if offered(name) {
		return true
	}
	_, err := m.root.Lstat(path.Join("tool", string(name)))
	return err == nil
}

func (m *maker) tool(t builtin.Tool) {
	if m.err != nil {
		return
	}
	rel := path.Join("tool", string(t.Name))
	_, err := m.root.Lstat(rel)
	missing, before := errdefs.Is(err, errdefs.NotFound), len(m.made)
	m.dir(rel+".d", dirPerm)
	files := t.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "" {
			continue
		}
		if err := control.CheckTool(name, files[name]); err != nil && m.err == nil {
			m.err = errdefs.New(errdefs.Internal, "built-in tool %s: %w", t.Name, err)
		}
		m.file(path.Join(rel+".d", name), files[name], filePerm, false)
	}
	m.file(rel, files[""], execPerm, false) // last: a tool without its controls would be an unknown one
	if missing && m.err == nil {
		m.made = append(m.made[:before], rel) // a new tool is one thing
	}
}

// links points bin/NAME at the programs.
func (m *maker) links(bins map[string]string) {
	if m.err != nil || len(bins) == 0 {
		return
	}
	dir, err := m.root.Sub("bin")
	if err != nil {
		m.err = err
		return
	}
	defer dir.Close()
	for _, name := range slices.Sorted(maps.Keys(bins)) {
		made, err := link(dir, name, bins[name])
		if err != nil {
			m.err = errdefs.New(errdefs.KindOf(err), "bin/%s: %w", name, err)
			return
		}
		if made {
			m.made = append(m.made, "bin/"+name)
		}
	}
}

// link makes or replaces the link NAME in dir; it reports whether it had to.
func link(dir *atomicfile.Dir, name, target string) (bool, error) {
	buf := make([]byte, unix.PathMax)
	if n, err := unix.Readlinkat(dir.FD(), name, buf); err == nil && string(buf[:n]) == target {
		return false, nil
	}
	temp := "." + name + "." + strconv.Itoa(os.Getpid())
	if err := unix.Symlinkat(target, dir.FD(), temp); err != nil {
		return false, err
	}
	if err := unix.Renameat(dir.FD(), temp, dir.FD(), name); err != nil {
		unix.Unlinkat(dir.FD(), temp, 0)
		return false, err
	}
	return true, dir.Sync()
}
