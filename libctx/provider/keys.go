package provider

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Key reads a key. No such key is errdefs.NotFound, one that others can read or
// change errdefs.Denied, one that is not one word of printable ASCII
// errdefs.Invalid. No error holds anything of the file's content.
func Key(l paths.Layout, name, slot string) (key Secret, err error) {
	err = asKeeper(l, name, slot, func(me uint32) error {
		dir, err := openDir(l.Secrets, "provider/"+name, looseRead, me)
		if err != nil {
			return err
		}
		defer dir.Close()
		text, st, err := dir.ReadStat(slot, libctx.MaxKey+1)
		if err != nil {
			return err
		}
		path := filepath.Join(dir.Path(), slot)
		if err := trust(path, &st, looseRead, me); err != nil {
			return err
		}
		if n := len(text); n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
		}
		if err := checkKey(string(text)); err != nil {
			return errdefs.New(errdefs.Invalid, "%s: %w", path, err)
		}
		key = NewSecret(string(text))
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = errdefs.New(errdefs.NotFound, "provider %s has no key in slot %s", name, slot).WithHint("ctx provider key %s", name)
	}
	return key, err
}

// HasKey reports whether there is a key, without reading it.
func HasKey(l paths.Layout, name, slot string) (bool, error) {
	err := asKeeper(l, name, slot, func(me uint32) error {
		dir, err := openDir(l.Secrets, "provider/"+name, looseRead, me)
		if err != nil {
			return err
		}
		defer dir.Close()
		_, err = dir.Lstat(slot)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SetKey writes a key, in place of one that is there, for its owner's eyes
// alone. The owner is that of the directory of the secrets: root sets keys for
// the user ctxmodel runs as.
func SetKey(l paths.Layout, name, slot string, key Secret) error {
	if err := checkKey(key.Reveal()); err != nil {
		return errdefs.New(errdefs.Invalid, "the key: %w", err)
	}
	if err := os.MkdirAll(l.Secrets, 0o700); err != nil {
		return err
	}
	return asKeeper(l, name, slot, func(me uint32) error {
		dir, err := makeDir(l.Secrets, "provider/"+name, 0o700, looseRead, me)
		if err != nil {
			return err
		}
		defer dir.Close()
		return dir.Replace(slot, []byte(key.Reveal()+"\n"), 0o600)
	})
}

// RemoveKeys removes all keys of a provider; none is no error.
func RemoveKeys(l paths.Layout, name string) error {
	err := asKeeper(l, name, DefaultSlot, func(me uint32) error {
		dir, err := openDir(l.Secrets, "provider", looseWrite, me)
		if err != nil {
			return err
		}
		defer dir.Close()
		return dir.RemoveAll(name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// asKeeper works on the keys with the rights of their owner, me, once the names
// are checked. Only root can be somebody else; it then touches nothing that the
// owner could not.
func asKeeper(l paths.Layout, name, slot string, work func(me uint32) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := checkName("slot", slot); err != nil {
		return err
	}
	var st unix.Stat_t
	if self() != 0 || unix.Stat(l.Secrets, &st) != nil || st.Uid == 0 {
		return work(self())
	}
	id, _, err := asuser.Lookup(st.Uid)
	if err != nil {
		return err
	}
	return id.Do(func() error { return work(st.Uid) })
}

// checkKey wants one word that can stand in a header.
func checkKey(text string) error {
	if len(text) < libctx.MinKey || len(text) > libctx.MaxKey {
		return errdefs.New(errdefs.Invalid, "is not %d to %d bytes", libctx.MinKey, libctx.MaxKey)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return errdefs.New(errdefs.Invalid, "is not one word of printable ASCII")
		}
	}
	return nil
}
