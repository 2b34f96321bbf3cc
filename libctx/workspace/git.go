package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// maxPointer bounds the files of a repository that are read here, in bytes.
const maxPointer = 64 << 10

// repository makes git work in a linked worktree or a submodule, whose .git is a
// file that names a directory elsewhere: that directory is shown read-only at
// the place the file means, seen from /workspace. It must point back to this
// workspace; the file itself is only the workspace's word. Where this is not to
// be had nothing is shown, and git inside says that there is no repository.
func repository(w *sandbox.Workspace, guard *guard) {
	text, ok := read(filepath.Join(w.Dir, ".git"))
	if !ok {
		return
	}
	pointer, ok := parsePointer(text)
	if !ok {
		return
	}
	host, inside := pointer, filepath.Clean(pointer)
	if !filepath.IsAbs(pointer) {
		host = filepath.Join(w.Dir, pointer)
		inside = filepath.Join(paths.InWorkspace, pointer)
	}
	host, err := filepath.EvalSymlinks(host)
	if err != nil || paths.Below(host, w.Dir) {
		return // it is not there, or seen with the workspace anyway
	}
	if worktree(w.Dir, host) {
		// Objects and references are in the repository it belongs to.
		host, inside = up(host), up(inside)
	} else if at, ok := submodule(w.Dir, host, inside); ok {
		if at != paths.InWorkspace {
			w.Links = append(w.Links, sandbox.Link{Target: paths.InWorkspace, At: at})
		}
	} else {
		return
	}
	var st unix.Stat_t
	if err := unix.Lstat(host, &st); err != nil || sandbox.Reserved(inside) {
		w.Links = nil
		return
	}
	if hit, err := guard.hit(host); err != nil || hit != "" {
		w.Links = nil
		return
	}
	w.ReadOnly = append(w.ReadOnly, sandbox.Bind{Source: host, Target: inside, Dev: uint64(st.Dev), Ino: st.Ino})
}

// up is the repository of a worktree's directory, REPOSITORY/worktrees/NAME.
func up(gitdir string) string { return filepath.Dir(filepath.Dir(gitdir)) }

// worktree reports whether gitdir is the directory of a linked worktree at dir:
// it lies in its repository as git lays it out, and its back-pointer is the .git
// file of dir.
func worktree(dir, gitdir string) bool {
	if filepath.Base(filepath.Dir(gitdir)) != "worktrees" {
		return false
	}
	common, ok := read(filepath.Join(gitdir, "commondir"))
	if !ok || line(common) != "../.." {
		return false
	}
	back, ok := read(filepath.Join(gitdir, "gitdir"))
	if !ok {
		return false
	}
	return filepath.Base(line(back)) == ".git" && leads(gitdir, filepath.Dir(line(back)), dir)
}

// submodule reports whether gitdir is the repository of a submodule checked out
// at dir, and the inside path at which its configuration expects the checkout,
// if gitdir is shown at inside.
func submodule(dir, gitdir, inside string) (at string, ok bool) {
	text, ok := read(filepath.Join(gitdir, "config"))
	if !ok {
		return "", false
	}
	tree, ok := coreWorktree(text)
	if !ok || !leads(gitdir, tree, dir) {
		return "", false
	}
	at = tree
	if !filepath.IsAbs(tree) {
		at = filepath.Join(inside, tree)
	}
	at = filepath.Clean(at)
	return at, at == paths.InWorkspace || !sandbox.Reserved(at) && !paths.Below(at, inside)
}

// leads reports whether path, relative to base if it is relative, is dir.
func leads(base, path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && real == dir
}

// line is a text without its final LF.
func line(text string) string { return strings.TrimSuffix(text, "\n") }

// read reads a small regular file; nothing else is opened for longer than to
// see what it is.
func read(path string) (string, bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	var b strings.Builder
	_, err = io.CopyN(&b, f, maxPointer+1)
	return b.String(), errors.Is(err, io.EOF)
}

// parsePointer reads a .git file: "gitdir: PATH" LF.
func parsePointer(text string) (string, bool) {
	path, ok := strings.CutPrefix(line(text), "gitdir: ")
	if !ok || path == "" || strings.ContainsAny(path, "\n\r\x00") {
		return "", false
	}
	return path, true
}

// coreWorktree reads core.worktree from a repository's configuration. Includes
// are not followed.
func coreWorktree(text string) (value string, ok bool) {
	core := false
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			section, rest, closed := strings.Cut(l[1:], "]")
			core = closed && strings.EqualFold(section, "core")
			l = strings.TrimSpace(rest)
		}
		key, v, found := strings.Cut(l, "=")
		if core && found && strings.EqualFold(strings.TrimSpace(key), "worktree") {
			value, ok = configValue(strings.TrimSpace(v))
		}
	}
	return value, ok && value != "" && !strings.Contains(value, "\x00")
}

// configValue undoes the quoting of a value on one line: double quotes,
// backslash escapes, comments.
func configValue(v string) (string, bool) {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\':
			i++
			if i == len(v) {
				return "", false
			}
			switch v[i] {
			case '"', '\\':
				b.WriteByte(v[i])
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			default:
				return "", false
			}
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimRight(b.String(), " \t"), true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), !quoted
}
