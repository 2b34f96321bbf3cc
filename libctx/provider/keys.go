package provider

import (
	"errors"
	"io/fs"
	"path/filepath"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// Key reads a key. No such key is errdefs.NotFound; a file that others can read
// or write, or that is not one line of printable ASCII, is refused. No error
// holds anything of the file's content.
func Key(l paths.Layout, name, slot string) (Secret, error) {
	if err := checkKeyNames(name, slot); err != nil {
		return Secret{}, err
	}
	dir, err := openDir(l.Secrets, "provider/"+name, looseRead)
	if errdefs.Is(err, errdefs.NotFound) {
		return Secret{}, noKey(name, slot)
	}
	if err != nil {
		return Secret{}, err
	}
	defer dir.Close()
	text, st, err := dir.ReadStat(slot, libctx.MaxKey+1)
	if errors.Is(err, fs.ErrNotExist) {
		return Secret{}, noKey(name, slot)
	}
	if err != nil {
		return Secret{}, err
	}
	path := filepath.Join(dir.Path(), slot)
	if err := trust(path, &st, looseRead); err != nil {
		return Secret{}, err
	}
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	if err := checkKey(string(text)); err != nil {
		return Secret{}, errdefs.New(errdefs.Invalid, "%s: %w", path, err)
	}
	return NewSecret(string(text)), nil
}

// SetKey writes a key, in place of one that is there. The file is readable for
// its owner alone, who is the owner of the directory of the secrets: root sets
// keys for the user ctxmodel runs as.
func SetKey(l paths.Layout, name, slot string, key Secret) error {
	if err := checkKeyNames(name, slot); err != nil {
		return err
	}
	if err := checkKey(key.Reveal()); err != nil {
		return errdefs.New(errdefs.Invalid, "the key: %w", err)
	}
	dir, err := makeDir(l.Secrets, "provider/"+name, 0o700, looseRead)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Replace(slot, []byte(key.Reveal()+"\n"), 0o600)
}

// RemoveKeys removes all keys of a provider; none is no error.
func RemoveKeys(l paths.Layout, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	dir, err := openDir(l.Secrets, "provider", looseWrite)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.RemoveAll(name)
}

// HasKey reports whether there is a key in a slot, without reading it.
func HasKey(l paths.Layout, name, slot string) (bool, error) {
	if err := checkKeyNames(name, slot); err != nil {
		return false, err
	}
	dir, err := openDir(l.Secrets, "provider/"+name, looseRead)
	if errdefs.Is(err, errdefs.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	st, err := dir.Lstat(slot)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG, err
}

func checkKeyNames(name, slot string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return CheckName(slot)
}

// checkKey wants one line that can stand in a header.
func checkKey(text string) error {
	if text == "" || len(text) > libctx.MaxKey {
		return errdefs.New(errdefs.Invalid, "is not 1 to %d bytes", libctx.MaxKey)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return errdefs.New(errdefs.Invalid, "is not one word of printable ASCII")
		}
	}
	return nil
}

func noKey(name, slot string) error {
	return errdefs.New(errdefs.NotFound, "provider %s has no key in slot %s", name, slot).WithHint("ctx provider key %s", name)
}
