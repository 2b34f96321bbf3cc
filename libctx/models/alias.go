package models

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Ref is what a model's name stands for.
type Ref struct {
	Name libctx.Model // as written
	ID   libctx.Model // provider/model; the tree need not have it
	// InHome: the name is an alias of the user's own.
	InHome bool
	// Own: it is, in a tree that is somebody else's. What a policy says of the
	// name is then not said of ID, since the user decides where it leads.
	Own bool
}

// Resolve finds the model that a name means for the user uid: a full name is
// its own, an alias is looked up among the user's, then among the tree's. It
// does not look whether the tree has the model. Errors: errdefs.NotFound if
// there is no such alias; errdefs.Denied, errdefs.Invalid naming the alias that
// can not be believed or leads to no model.
func Resolve(l paths.Layout, uid uint32, name libctx.Model) (libctx.Model, error) {
	ref, err := Find(l, uid, name)
	return ref.ID, err
}

// Find is Resolve and says in whose word the answer stands.
func Find(l paths.Layout, uid uint32, name libctx.Model) (Ref, error) {
	if _, err := libctx.ParseModel(string(name)); err != nil {
		return Ref{}, err
	}
	if strings.Contains(string(name), "/") {
		return Ref{Name: name, ID: name}, nil
	}
	ref, err := within(l, func(t *tree) (Ref, error) { return t.find(l, uid, name) })
	if err != nil {
		return Ref{}, about(name, err)
	}
	return ref, nil
}

func (t *tree) find(l paths.Layout, uid uint32, name libctx.Model) (Ref, error) {
	id, err := t.userAlias(l, uid, name)
	switch {
	case err == nil:
		own, err := t.foreign(uid)
		return Ref{name, id, true, own}, err
	case !errdefs.Is(err, errdefs.NotFound):
		return Ref{}, err
	}
	id, err = t.alias(name)
	return Ref{Name: name, ID: id}, err
}

// alias reads the tree's own alias.
func (t *tree) alias(name libctx.Model) (libctx.Model, error) {
	dir, err := t.dir("model")
	if err != nil {
		return "", err
	}
	defer dir.Close()
	id, err := readAlias(dir, "model/", name, t.owner, "")
	if errdefs.Is(err, errdefs.NotFound) {
		err = errdefs.New(errdefs.NotFound, "is no alias").WithHint("ctx model ls lists models and aliases")
	}
	return id, err
}

// Shared finds the model that an alias of the tree leads to, whatever aliases
// users have. Errors as Resolve.
func Shared(l paths.Layout, name libctx.Model) (libctx.Model, error) {
	id, err := within(l, func(t *tree) (libctx.Model, error) { return t.alias(name) })
	if err != nil {
		return "", about(name, err)
	}
	return id, nil
}

// foreign reports whether the tree's models are not the user's own.
func (t *tree) foreign(uid uint32) (bool, error) {
	st, err := t.root.Lstat("model")
	if err != nil {
		return false, t.blame(t.root, "model", "model", err)
	}
	return st.Uid != uid, nil
}

// userModels is where a user's aliases are, and homes is the way from there to
// the tree's models.
func userModels(uid uint32) string {
	return path.Join("home", strconv.FormatUint(uint64(uid), 10), "model")
}

const fromHome = "../../../model/"

// userAlias reads home/UID/model/NAME with that user's rights.
func (t *tree) userAlias(l paths.Layout, uid uint32, name libctx.Model) (id libctx.Model, err error) {
	err = as(l, uid, func() error {
		dir, err := t.dirOf(userModels(uid), uid)
		if err != nil {
			return err
		}
		defer dir.Close()
		id, err = readAlias(dir, userModels(uid)+"/", name, uid, fromHome)
		return err
	})
	return id, err
}

// as runs fn with a user's rights if this process is root in system mode.
func as(l paths.Layout, uid uint32, fn func() error) error {
	if !l.System || os.Geteuid() != 0 || uid == 0 {
		return fn()
	}
	id, _, err := asuser.Lookup(uid)
	if err != nil {
		return err
	}
	return id.Do(fn)
}

// readAlias reads the link dir/NAME, which is looked at and never followed. Its
// text is provider/model, behind way if there is one. where names the directory
// in messages.
func readAlias(dir *atomicfile.Dir, where string, name libctx.Model, owner uint32, way string) (libctx.Model, error) {
	fd, err := unix.Openat(dir.FD(), string(name), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errdefs.New(errdefs.NotFound, "%s%s: is not there", where, name)
	}
	if err != nil {
		return "", errdefs.New(errdefs.KindOf(err), "%s%s: %w", where, name, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", errdefs.New(errdefs.IO, "%s%s: %w", where, name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", errdefs.New(errdefs.Invalid, "%s%s: is no alias, which is a link to PROVIDER/MODEL", where, name)
	}
	if err := trusted(where+string(name), &st, owner); err != nil {
		return "", err
	}
	buf := make([]byte, 2*libctx.MaxName+len(fromHome)+2)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", errdefs.New(errdefs.IO, "%s%s: %w", where, name, err)
	}
	text := string(buf[:n])
	id, err := libctx.ParseModel(strings.TrimPrefix(text, way))
	if err != nil || n == len(buf) || !strings.Contains(string(id), "/") {
		return "", errdefs.New(errdefs.Invalid, "%s%s: leads to %q, which is not PROVIDER/MODEL", where, name, text)
	}
	return id, nil
}
