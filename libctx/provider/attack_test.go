package provider

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// place is a layout whose configuration and secrets are in a fresh directory.
func place(t *testing.T) paths.Layout {
	t.Helper()
	// Not t.TempDir: another user has to get there.
	dir, err := os.MkdirTemp("/tmp", "provider")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	l := paths.Layout{Config: filepath.Join(dir, "config"), Secrets: filepath.Join(dir, "secrets")}
	must(t, os.Mkdir(l.Config, 0o700))
	must(t, os.Mkdir(l.Secrets, 0o700))
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lab(t *testing.T) *Provider {
	t.Helper()
	p, err := Parse([]byte(whole))
	must(t, err)
	return p
}

func TestFiles(t *testing.T) {
	l := place(t)
	if names, err := List(l); err != nil || len(names) != 0 {
		t.Errorf("before the first: %v, %v", names, err)
	}
	if _, err := Load(l, "lab"); !errdefs.Is(err, errdefs.NotFound) || errdefs.HintOf(err) == "" {
		t.Errorf("before the first: %v", err)
	}
	must(t, Save(l, lab(t)))
	must(t, Save(l, lab(t)))
	if text, err := os.ReadFile(filepath.Join(l.Providers(), "lab.json")); err != nil || string(text) != whole {
		t.Errorf("%s, %v", text, err)
	}
	if p, err := Load(l, "lab"); err != nil || p.BaseURL != "https://lab.example/v1" {
		t.Errorf("%v, %v", p, err)
	}
	for _, other := range []string{"README", "x.d.json", ".tmp-1", "note.json.bak"} {
		must(t, os.WriteFile(filepath.Join(l.Providers(), other), nil, 0o600))
	}
	if names, err := List(l); err != nil || strings.Join(names, " ") != "lab" {
		t.Errorf("%v, %v", names, err)
	}
	must(t, Remove(l, "lab"))
	if err := Remove(l, "lab"); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("removed twice: %v", err)
	}
	for _, name := range []string{"", "..", "../lab", "a/b", ".lab", "lab\x00"} {
		if _, err := Load(l, name); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("load %q: %v", name, err)
		}
		if err := Remove(l, name); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("remove %q: %v", name, err)
		}
	}
}

func TestModesOfFiles(t *testing.T) {
	for _, system := range []bool{false, true} {
		l := place(t)
		l.System = system
		must(t, Save(l, lab(t)))
		file, dir := fs.FileMode(0o600), fs.FileMode(0o700)
		if system { // ctxmodel is somebody else there
			file, dir = 0o644, 0o755
		}
		mode(t, filepath.Join(l.Providers(), "lab.json"), file)
		mode(t, l.Providers(), dir)
		must(t, SetKey(l, "lab", "work", NewSecret(canary)))
		mode(t, filepath.Join(l.Keys(), "lab/work"), 0o600)
		mode(t, filepath.Join(l.Keys(), "lab"), 0o700)
		mode(t, l.Keys(), 0o700)
	}
}

func mode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	st, err := os.Lstat(path)
	must(t, err)
	if st.Mode().Perm() != want {
		t.Errorf("%s has mode %v", path, st.Mode())
	}
}

// Whatever another user could have put in the place of a provider file is
// refused.
func TestForeignProviderFiles(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l paths.Layout, file string) error
		want  errdefs.Kind
	}{
		"a link": {func(l paths.Layout, file string) error {
			return errors.Join(os.Rename(file, l.Config+"/x"), os.Symlink(l.Config+"/x", file))
		}, errdefs.Invalid},
		"a dangling link": {func(_ paths.Layout, file string) error {
			return errors.Join(os.Remove(file), os.Symlink("nowhere", file))
		}, errdefs.Invalid},
		"a FIFO":                  {func(_ paths.Layout, file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, errdefs.Invalid},
		"a directory":             {func(_ paths.Layout, file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }, errdefs.Invalid},
		"group-writable":          {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o620) }, errdefs.Denied},
		"world-writable":          {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o602) }, errdefs.Denied},
		"an open directory":       {func(l paths.Layout, _ string) error { return os.Chmod(l.Providers(), 0o770) }, errdefs.Denied},
		"an open directory above": {func(l paths.Layout, _ string) error { return os.Chmod(l.Config, 0o707) }, errdefs.Denied},
		"a directory that is a link": {func(l paths.Layout, _ string) error {
			return errors.Join(os.Rename(l.Providers(), l.Config+"/x"), os.Symlink("x", l.Providers()))
		}, errdefs.Invalid},
		"too long":                {func(_ paths.Layout, file string) error { return os.Truncate(file, libctx.MaxControlFile+1) }, errdefs.TooBig},
		"of another name":         {func(l paths.Layout, file string) error { return os.WriteFile(file, []byte(seeds[1]), 0o600) }, errdefs.Invalid},
		"nothing in it":           {func(_ paths.Layout, file string) error { return os.Truncate(file, 0) }, errdefs.Invalid},
		"more than one object":    {func(_ paths.Layout, file string) error { return os.WriteFile(file, []byte(whole+whole), 0o600) }, errdefs.Invalid},
		"a line after the object": {func(_ paths.Layout, file string) error { return os.WriteFile(file, []byte(whole+"x\n"), 0o600) }, errdefs.Invalid},
	} {
		l := place(t)
		must(t, Save(l, lab(t)))
		must(t, c.spoil(l, filepath.Join(l.Providers(), "lab.json")))
		if p, err := Load(l, "lab"); p != nil || errdefs.KindOf(err) != c.want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// A key that others could have read or put there is refused, and no error shows
// anything of it.
func TestForeignKeys(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l paths.Layout, file string) error
		want  errdefs.Kind
	}{
		"as it should be": {func(paths.Layout, string) error { return nil }, ""},
		"without its newline": {func(_ paths.Layout, file string) error {
			return os.WriteFile(file, []byte(canary), 0o600)
		}, ""},
		"read-only":      {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o400) }, ""},
		"group-readable": {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o640) }, errdefs.Denied},
		"world-readable": {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o604) }, errdefs.Denied},
		"executable":     {func(_ paths.Layout, file string) error { return os.Chmod(file, 0o610) }, errdefs.Denied},
		"a link": {func(l paths.Layout, file string) error {
			return errors.Join(os.Rename(file, l.Secrets+"/x"), os.Symlink(l.Secrets+"/x", file))
		}, errdefs.Invalid},
		"a FIFO": {func(_ paths.Layout, file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, errdefs.Invalid},
		"a directory of keys that others see": {func(l paths.Layout, file string) error {
			return os.Chmod(filepath.Dir(file), 0o750)
		}, errdefs.Denied},
		"a directory above that others change": {func(l paths.Layout, _ string) error { return os.Chmod(l.Keys(), 0o720) }, errdefs.Denied},
		"secrets that others change":           {func(l paths.Layout, _ string) error { return os.Chmod(l.Secrets, 0o770) }, errdefs.Denied},
		"a directory that is a link": {func(l paths.Layout, file string) error {
			return errors.Join(os.Rename(filepath.Dir(file), l.Secrets+"/x"), os.Symlink("../x", filepath.Dir(file)))
		}, errdefs.Invalid},
		"gone":  {func(_ paths.Layout, file string) error { return os.Remove(file) }, errdefs.NotFound},
		"empty": {func(_ paths.Layout, file string) error { return os.Truncate(file, 0) }, errdefs.Invalid},
		"two lines": {func(_ paths.Layout, file string) error {
			return os.WriteFile(file, []byte(canary+"\n"+canary+"\n"), 0o600)
		}, errdefs.Invalid},
		"two words": {func(_ paths.Layout, file string) error { return os.WriteFile(file, []byte(canary+" "+canary), 0o600) }, errdefs.Invalid},
		"CRLF":      {func(_ paths.Layout, file string) error { return os.WriteFile(file, []byte(canary+"\r\n"), 0o600) }, errdefs.Invalid},
		"not ASCII": {func(_ paths.Layout, file string) error { return os.WriteFile(file, []byte(canary+"ä\n"), 0o600) }, errdefs.Invalid},
		"an old size": {func(_ paths.Layout, file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("k", libctx.MaxKey)+"\n"), 0o600)
		}, ""},
		"too long": {func(_ paths.Layout, file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("k", libctx.MaxKey+1)), 0o600)
		}, errdefs.Invalid},
		"far too long": {func(_ paths.Layout, file string) error {
			return os.WriteFile(file, []byte(strings.Repeat(canary, libctx.MaxKey)), 0o600)
		}, errdefs.TooBig},
	} {
		l := place(t)
		must(t, SetKey(l, "lab", "work", NewSecret(canary)))
		must(t, c.spoil(l, filepath.Join(l.Keys(), "lab/work")))
		key, err := Key(l, "lab", "work")
		if errdefs.KindOf(err) != c.want || key.Empty() != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error()+errdefs.HintOf(err), canary) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}

func TestKeys(t *testing.T) {
	l := place(t)
	if has, err := HasKey(l, "lab", DefaultSlot); has || err != nil {
		t.Errorf("before the first: %v, %v", has, err)
	}
	must(t, RemoveKeys(l, "lab"))
	must(t, SetKey(l, "lab", DefaultSlot, NewSecret("old-old-old")))
	must(t, SetKey(l, "lab", DefaultSlot, NewSecret(canary)))
	must(t, SetKey(l, "other", DefaultSlot, NewSecret("other-other")))
	if key, err := Key(l, "lab", DefaultSlot); err != nil || key.Reveal() != canary {
		t.Error(err)
	}
	if has, err := HasKey(l, "lab", DefaultSlot); !has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	for _, text := range []string{"", "seven77", "two words", "line\n", "tab\t", "nul\x00", "ä", strings.Repeat("k", libctx.MaxKey+1)} {
		if err := SetKey(l, "lab", DefaultSlot, NewSecret(text)); !errdefs.Is(err, errdefs.Invalid) || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, name := range []string{"", "..", "a/b", "../../x"} {
		if err := SetKey(l, name, DefaultSlot, NewSecret("kkkkkkkk")); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
		if err := SetKey(l, "lab", name, NewSecret("kkkkkkkk")); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("slot %q: %v", name, err)
		}
		if err := RemoveKeys(l, name); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	must(t, RemoveKeys(l, "lab"))
	if _, err := Key(l, "lab", DefaultSlot); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
	if _, err := Key(l, "other", DefaultSlot); err != nil {
		t.Error(err)
	}
}

// Many writers leave one whole key, and no reader sees anything else.
func TestKeysAtOnce(t *testing.T) {
	l := place(t)
	must(t, SetKey(l, "lab", DefaultSlot, NewSecret(strings.Repeat("a", 100))))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				if err := SetKey(l, "lab", DefaultSlot, NewSecret(strings.Repeat(string(rune('a'+i)), 100))); err != nil {
					t.Error(err)
				}
				key, err := Key(l, "lab", DefaultSlot)
				if text := key.Reveal(); err != nil || text != strings.Repeat(text[:1], 100) {
					t.Errorf("a mixed key, %v", err)
				}
			}
		})
	}
	wg.Wait()
}

// Owners: the reader's own files and root's, nobody else's.
func TestTrust(t *testing.T) {
	for _, c := range []struct {
		uid, mode, loose, me uint32
		ok                   bool
	}{
		{1000, 0o600, looseRead, 1000, true}, {0, 0o600, looseRead, 1000, true}, {1001, 0o600, looseRead, 1000, false},
		{1000, 0o600, looseWrite, 0, false}, {65534, 0o444, looseWrite, 1000, false},
		{1000, 0o644, looseWrite, 1000, true}, {1000, 0o644, looseRead, 1000, false}, {1000, 0o664, looseWrite, 1000, false},
		{1000, 0o646, looseWrite, 1000, false}, {0, 0o666, looseWrite, 1000, false},
	} {
		err := trust("/x", &unix.Stat_t{Uid: c.uid, Mode: unix.S_IFREG | c.mode}, c.loose, c.me)
		if (err == nil) != c.ok || err != nil && !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Root sets keys for the user whose directory it is, and reads no key that
// another user planted.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		// The rest needs a second user; TestTrust has the rule itself.
		l := place(t)
		must(t, SetKey(l, "lab", DefaultSlot, NewSecret(canary)))
		return
	}
	const keeper, stranger = 60001, 60002
	l := place(t)
	must(t, os.Chown(l.Secrets, keeper, keeper))
	must(t, SetKey(l, "lab", DefaultSlot, NewSecret(canary)))
	file := filepath.Join(l.Keys(), "lab", DefaultSlot)
	for _, path := range []string{l.Keys(), filepath.Dir(file), file} {
		var st unix.Stat_t
		must(t, unix.Lstat(path, &st))
		if st.Uid != keeper {
			t.Errorf("%s belongs to %d", path, st.Uid)
		}
	}
	if key, err := Key(l, "lab", DefaultSlot); err != nil || key.Reveal() != canary {
		t.Error(err)
	}
	must(t, os.Chown(file, stranger, stranger))
	if _, err := Key(l, "lab", DefaultSlot); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("a stranger's key: %v", err)
	}
	must(t, Save(l, lab(t)))
	must(t, os.Chown(filepath.Join(l.Providers(), "lab.json"), stranger, stranger))
	if _, err := Load(l, "lab"); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("a stranger's provider: %v", err)
	}
	must(t, os.Chown(l.Providers(), stranger, stranger))
	if _, err := List(l); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("a stranger's directory: %v", err)
	}
}
