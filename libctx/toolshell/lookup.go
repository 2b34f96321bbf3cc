package toolshell

import (
	"errors"
	"path/filepath"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Why says why a file of the right name is not a hit.
type Why string

// The reasons. Admission has a denial code of the same meaning for each.
const (
	NotRegular    Why = "is not a regular file"
	NotExecutable Why = "is not executable"
)

// Miss is a file of the right name that was passed over.
type Miss struct {
	Path string
	Why  Why
}

// Hit is the outcome of a lookup. Without a hit Path is empty; Passed, in path
// order, says what stood in the way before the hit or instead of one.
type Hit struct {
	Path   string // of the executable
	Passed []Miss
}

// Control is the tool's control directory, beside the hit.
func (h Hit) Control() string { return h.Path + ".d" }

// Reason explains a lookup without a hit: it is the first file passed over, or
// false if no directory holds the name at all.
func (h Hit) Reason() (Miss, bool) {
	if len(h.Passed) == 0 {
		return Miss{}, false
	}
	return h.Passed[0], true
}

// Lookup finds a tool in dirs, host directories in path order: the first
// regular file of that name which the effective user may execute. The file is
// not followed if it is a link. Directories that do not exist or can not be
// searched hold nothing. An error (errdefs.IO, or the kind of the system's
// errno) means that the answer is not known.
func Lookup(dirs []string, name libctx.Tool) (Hit, bool, error) {
	var hit Hit
	for _, dir := range dirs {
		file := filepath.Join(dir, string(name))
		why, found, err := look(file)
		switch {
		case err != nil:
			return Hit{}, false, errdefs.New(errdefs.KindOf(err), "%s: %w", file, err)
		case !found:
		case why != "":
			hit.Passed = append(hit.Passed, Miss{file, why})
		default:
			hit.Path = file
			return hit, true, nil
		}
	}
	return hit, false, nil
}

// look says whether file is there, and why it is not a hit.
func look(file string) (why Why, found bool, err error) {
	var st unix.Stat_t
	switch err := unix.Lstat(file, &st); {
	case absent(err):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return NotRegular, true, nil
	}
	switch err := unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.EACCES):
		return NotExecutable, true, nil
	case absent(err):
		return "", false, nil
	case err != nil:
		return "", false, err
	}
	return "", true, nil
}

func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES)
}
