package search

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/tsh/internal/tool/object"
	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"
)

// ignoreFiles are files of ignore patterns, the weaker first.
var ignoreFiles = []string{".gitignore", ".ignore"}

// rule is one line of such a file.
type rule struct {
	keep    bool // the line begins with !: what matches is not ignored
	dirs    bool // only directories match
	path    bool // the path below the file's directory is compared, else the name
	literal bool // glob is the text itself
	suffix  bool // glob is * and a text
	glob    string
}

// rules are the patterns of one directory and those above it, strongest last.
// Nil has none.
type rules struct {
	above *rules
	depth int // bytes of a path, from the top on, that lead to the directory
	list  []rule
}

// ignored says whether an object is left out; p is its path from the top on. The
// nearest file that has something to say of it decides, in it the last line.
func (r *rules) ignored(p string, dir bool) bool {
	name := path.Base(p)
	for ; r != nil; r = r.above {
		for i := len(r.list) - 1; i >= 0; i-- {
			if l := &r.list[i]; (dir || !l.dirs) && l.matches(p[r.depth:], name) {
				return !l.keep
			}
		}
	}
	return false
}

func (l *rule) matches(rel, name string) bool {
	what := name
	if l.path {
		what = rel
	}
	switch {
	case l.literal:
		return what == l.glob
	case l.suffix:
		return strings.HasSuffix(what, l.glob[1:])
	}
	return doublestar.MatchUnvalidated(l.glob, what)
}

// parse reads the lines of a file as git does.
func parse(text []byte) []rule {
	var list []rule
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\uFEFF")) {
		line = strings.TrimRight(line, "\r\n")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var r rule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.dirs = strings.CutSuffix(line, "/")
		r.path = strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if strings.HasSuffix(line, "/**") {
			line += "/*" // what is below, and not the directory itself
		}
		special := strings.ContainsAny(line, `*?[\`)
		r.literal = !special
		r.suffix = !r.path && strings.HasPrefix(line, "*") && !strings.ContainsAny(line[1:], `*?[\`)
		if special && !r.suffix {
			line = strings.NewReplacer("{", `\{`, "}", `\}`).Replace(line)
		}
		if r.glob = line; line != "" && (!special || r.suffix || doublestar.ValidatePattern(line)) {
			list = append(list, r)
		}
	}
	return list
}

// load adds the patterns that an open directory has; depth is the length of the
// path that leads to it from the top on, with its slash.
func (r *rules) load(dir, depth int) *rules {
	var list []rule
	for _, name := range ignoreFiles {
		list = append(list, parse(small(dir, name))...)
	}
	if len(list) == 0 {
		return r
	}
	return &rules{above: r, depth: depth, list: list}
}

// small is the content of a file of patterns, nil if there is none to be read.
func small(dir int, name string) []byte {
	fd, err := object.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || object.Kind(st.Mode) != "file" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, libctx.MaxIgnoreFile))
	if err != nil {
		return nil
	}
	if len(text) == libctx.MaxIgnoreFile {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return text
}

// above loads the patterns of the directories above an absolute path: up to the
// one that holds .git, or, if none does, up to the current directory if that is
// above. It returns them and the path from the topmost of these directories on.
func above(dir, cwd string) (*rules, string) {
	var dirs []string // from the nearest to the topmost
	top := false
	for at := dir; !top && at != "/"; {
		top = exists(path.Join(at, ".git"))
		if at = path.Dir(at); !top {
			dirs = append(dirs, at)
		}
	}
	if !top {
		n := 0
		for n < len(dirs) && (dirs[n] == cwd || strings.HasPrefix(dirs[n], cwd+"/")) {
			n++
		}
		dirs = dirs[:n]
	}
	root := dir
	if len(dirs) > 0 {
		root = dirs[len(dirs)-1]
	}
	var r *rules
	if list := parse(excludes(root)); len(list) > 0 {
		r = &rules{list: list}
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		fd, err := object.Openat(unix.AT_FDCWD, dirs[i], unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			continue
		}
		r = r.load(fd, len(below(root, dirs[i])))
		unix.Close(fd)
	}
	return r, below(root, dir)
}

// below is the path that leads from root to dir, with a slash behind it, or "".
func below(root, dir string) string {
	if rel := strings.TrimPrefix(strings.TrimPrefix(dir, root), "/"); rel != "" {
		return rel + "/"
	}
	return ""
}

// excludes are the patterns of a repository that are not part of it.
func excludes(root string) []byte {
	fd, err := object.Openat(unix.AT_FDCWD, path.Join(root, ".git/info"), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return small(fd, "exclude")
}

func exists(p string) bool {
	var st unix.Stat_t
	return !errors.Is(unix.Lstat(p, &st), unix.ENOENT)
}
