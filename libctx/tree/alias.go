package tree

import (
	"path"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
	"golang.org/x/sys/unix"
)

// SetAlias makes the alias name lead to the model target, provider/model, which
// the tree must have; an alias that is there is replaced. With own it is the
// alias of this process's user alone, else the tree's, which only its owner may
// change. A name that is something else already is errdefs.Exists. A change that
// would leave an agent with a window its model does not have is errdefs.Invalid.
func SetAlias(l paths.Layout, name, target libctx.Model, own bool) error {
	if err := checkAlias(name); err != nil {
		return err
	}
	m, err := models.Load(l, target)
	if err != nil {
		return err
	}
	return changeAlias(l, name, own, m.Limit, func(dir *atomicfile.Dir) error {
		st, err := dir.Lstat(string(name))
		switch {
		case err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK:
			return errdefs.New(errdefs.Exists, "alias %s: the name is taken by something else", name)
		case err != nil && !errdefs.Is(err, errdefs.NotFound):
			return err
		}
		_, err = link(dir, string(name), string(target))
		return err
	})
}

// RemoveAlias removes an alias of the tree, or with own of this process's user.
// One that is not there is errdefs.NotFound. Agents are protected as by
// SetAlias.
func RemoveAlias(l paths.Layout, name libctx.Model, own bool) error {
	if err := checkAlias(name); err != nil {
		return err
	}
	var limit window.Size // of what the name means then
	if id, err := models.Shared(l, name); own && err == nil {
		if m, err := models.Load(l, id); err == nil {
			limit = m.Limit
		}
	}
	return changeAlias(l, name, own, limit, func(dir *atomicfile.Dir) error {
		st, err := dir.Lstat(string(name))
		if errdefs.Is(err, errdefs.NotFound) || err == nil && st.Mode&unix.S_IFMT != unix.S_IFLNK {
			return errdefs.New(errdefs.NotFound, "no alias %q", name).WithHint("ctx model ls lists them")
		}
		if err == nil {
			err = dir.Remove(string(name))
		}
		if err == nil {
			err = dir.Sync()
		}
		return err
	})
}

func checkAlias(name libctx.Model) error {
	if _, err := libctx.ParseModel(string(name)); err != nil {
		return err
	}
	if strings.Contains(string(name), "/") {
		return errdefs.New(errdefs.Invalid, "alias %s: is the full name of a model", name)
	}
	return nil
}

// changeAlias runs fn on the directory of the alias, unless an agent of the
// alias needs a larger limit than the one it will have.
func changeAlias(l paths.Layout, name libctx.Model, own bool, limit window.Size, fn func(*atomicfile.Dir) error) error {
	self := asuser.Self().UID
	check := func() error {
		return keepsWindows(l, func(a libctx.Agent, ref models.Ref) (window.Size, bool) {
			if ref.Name != name {
				return 0, false
			}
			if own {
				owner, err := Owner(l, a)
				return limit, err == nil && owner == self
			}
			return limit, !ref.InHome
		})
	}
	if own {
		return inside(l, func(root *atomicfile.Dir) error {
			if err := check(); err != nil {
				return err
			}
			dir, err := root.Sub(path.Join("home", strconv.FormatUint(uint64(self), 10), "model"))
			if err != nil {
				return errdefs.New(errdefs.KindOf(err), "aliases of uid %d: %w", self, err)
			}
			defer dir.Close()
			return fn(dir)
		})
	}
	return changeModels(l, func(root *atomicfile.Dir) error {
		if err := check(); err != nil {
			return err
		}
		dir, err := root.Sub("model")
		if err != nil {
			return err
		}
		defer dir.Close()
		return fn(dir)
	})
}
