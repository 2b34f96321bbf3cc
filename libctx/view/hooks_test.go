package view

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

const (
	ofAgent = "agent/coder.d/hooks/"
	ofTool  = "tool/calc.d/hooks/"
	calc    = "/ctx/tool/calc"
)

// hooked is a world with hooks of the agent and of calc.
func hooked(t *testing.T) *world {
	w := newWorld(t)
	for _, rel := range []string{ofAgent + "pre.d/20-b", ofAgent + "pre.d/10-a", ofAgent + "post.d/log", ofTool + "pre.d/15-c"} {
		w.write(rel, "#!/bin/sh\n# "+rel+"\n", 0o755)
	}
	return w
}

// hooks is the names of the hooks before a call of calc, or why there are none.
func (w *world) hooks(when When) (names []string, err error) {
	w.Helper()
	all, err := w.load().Hooks(w.Layout, calc, when)
	for _, h := range all {
		names = append(names, h.Name)
		var text bytes.Buffer
		w.ok(h.Copy(&text))
		if !strings.Contains(text.String(), strings.TrimPrefix(h.Name, "/ctx/")) {
			w.Errorf("%s is %q", h.Name, text.String())
		}
		w.ok(h.Close())
	}
	return names, err
}

// TestHooks: those of the agent come before those of the tool, each in the order
// of names; other tools have none of calc's.
func TestHooks(t *testing.T) {
	w := hooked(t)
	w.write(ofAgent+"pre.d/.tmp-1", "half", 0o600)
	got, err := w.hooks(Before)
	w.ok(err)
	if s := strings.Join(got, " "); s != ofAgent+"pre.d/10-a "+ofAgent+"pre.d/20-b /ctx/"+ofTool+"pre.d/15-c" {
		t.Error(s)
	}
	got, err = w.hooks(After)
	w.ok(err)
	if s := strings.Join(got, " "); s != ofAgent+"post.d/log" {
		t.Error(s)
	}
	for _, tool := range []string{"", "/ctx/tool/none"} {
		all, err := w.load().Hooks(w.Layout, tool, Before)
		w.ok(err)
		if len(all) != 2 {
			t.Errorf("%q has %d", tool, len(all))
		}
		for _, h := range all {
			h.Close()
		}
	}
	for _, of := range []string{"", calc} {
		if wrong := w.load().HookErrors(w.Layout, of); wrong != nil {
			t.Error(wrong)
		}
	}
}

// TestNoHooks: most agents have none, and empty directories hold none.
func TestNoHooks(t *testing.T) {
	w := newWorld(t)
	for _, dir := range []string{"", ofAgent, ofAgent + "pre.d", ofTool + "pre.d"} {
		if dir != "" {
			w.dir(strings.TrimSuffix(dir, "/"))
		}
		if got, err := w.hooks(Before); err != nil || got != nil {
			t.Errorf("with %q: %v, %v", dir, got, err)
		}
	}
}

// TestHookAttacks: one hook that can not be believed leaves no hooks, and is named.
func TestHookAttacks(t *testing.T) {
	for name, attack := range map[string]func(w *world, rel string){
		"link": func(w *world, rel string) { w.relink(rel) },
		"dangling link": func(w *world, rel string) {
			w.ok(os.RemoveAll(w.path(rel)))
			w.ok(os.Symlink("/nowhere", w.path(rel)))
		},
		"written by the group": func(w *world, rel string) { w.ok(os.Chmod(w.path(rel), 0o775)) },
		"written by all":       func(w *world, rel string) { w.ok(os.Chmod(w.path(rel), 0o757)) },
		"FIFO": func(w *world, rel string) {
			w.ok(os.RemoveAll(w.path(rel)))
			w.ok(unix.Mkfifo(w.path(rel), 0o755))
		},
		"stranger": func(w *world, rel string) {
			if isRoot() {
				w.ok(os.Lchown(w.path(rel), stranger, stranger))
			} else {
				w.relink(rel) // an ordinary user can give nothing away
			}
		},
	} {
		for _, rel := range []string{
			ofAgent + "pre.d/10-a", ofAgent + "pre.d", "agent/coder.d/hooks",
			ofTool + "pre.d/15-c", ofTool + "pre.d", "tool/calc.d/hooks", "tool/calc.d",
		} {
			w := hooked(t)
			a := w.load()
			attack(w, rel)
			all, err := a.Hooks(w.Layout, calc, Before)
			if err == nil || all != nil || !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), rel) {
				t.Errorf("%s, %s: %d hooks, %v", rel, name, len(all), err)
			}
			of := ""
			if strings.HasPrefix(rel, "tool/") {
				of = calc
			}
			if wrong := a.HookErrors(w.Layout, of); len(wrong) == 0 || !strings.Contains(wrong[0].Error(), rel) {
				t.Errorf("%s, %s: %v", rel, name, wrong)
			}
		}
	}
}

// TestHookRefusals: what is no hook is no reason to go on without.
func TestHookRefusals(t *testing.T) {
	file := ofAgent + "pre.d/10-a"
	for name, c := range map[string]struct {
		do   func(w *world)
		kind errdefs.Kind
		says string
	}{
		"not executable": {func(w *world) { w.ok(os.Chmod(w.path(file), 0o644)) }, errdefs.Denied, "not executable"},
		"a directory":    {func(w *world) { w.dir(ofAgent + "pre.d/30-c") }, errdefs.Denied, "is a directory"},
		"a backup":       {func(w *world) { w.write(file+"~", "", 0o755) }, errdefs.Invalid, "no name of a hook"},
		"two lines":      {func(w *world) { w.write(file+"\nx", "", 0o755) }, errdefs.Invalid, "no name of a hook"},
		"too long":       {func(w *world) { w.ok(os.Truncate(w.path(file), libctx.MaxHookFile+1)) }, errdefs.TooBig, "longer than"},
		"too many": {func(w *world) {
			for i := range libctx.MaxHooks {
				w.write(ofAgent+"pre.d/x"+strconv.Itoa(i), "", 0o755)
			}
		}, errdefs.TooBig, "more than"},
		"no directory": {func(w *world) {
			w.ok(os.RemoveAll(w.path(ofAgent)))
			w.write("agent/coder.d/hooks", "", 0o755)
		}, errdefs.Denied, "hooks: is a regular file"},
	} {
		w := hooked(t)
		c.do(w)
		if got, err := w.hooks(Before); got != nil || !errdefs.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestHookReplaced: what is copied is what was looked at, whatever has its name;
// what was written to since is no copy at all.
func TestHookReplaced(t *testing.T) {
	file := ofAgent + "post.d/log"
	for name, c := range map[string]struct {
		do   func(w *world)
		kind errdefs.Kind
	}{
		"renamed over": {func(w *world) {
			w.write("agent/other", "#!/bin/sh\necho evil\n", 0o755)
			w.ok(os.Rename(w.path("agent/other"), w.path(file)))
		}, ""},
		"removed":    {func(w *world) { w.ok(os.Remove(w.path(file))) }, ""},
		"now a link": {func(w *world) { w.relink(file) }, ""},
		"rewritten":  {func(w *world) { w.write(file, "#!/bin/sh\necho evil and long\n", 0o755) }, errdefs.Busy},
		"emptied":    {func(w *world) { w.ok(os.Truncate(w.path(file), 0)) }, errdefs.Busy},
	} {
		w := hooked(t)
		was, err := os.ReadFile(w.path(file))
		w.ok(err)
		all, err := w.load().Hooks(w.Layout, "", After)
		w.ok(err)
		c.do(w)
		var text bytes.Buffer
		err = all[0].Copy(&text)
		if c.kind == "" && (err != nil || text.String() != string(was)) || c.kind != "" && !errdefs.Is(err, c.kind) {
			t.Errorf("%s: %q, %v", name, text.String(), err)
		}
		w.ok(all[0].Close())
	}
}

// TestHookOfRoot: in a control directory of root's the hooks are root's; a user's
// may hold either.
func TestHookOfRoot(t *testing.T) {
	if !isRoot() {
		t.Log("an ordinary user can make no files of root's: the rule is that of the controls beside them")
		return
	}
	w := hooked(t)
	w.control("coder", map[string]string{"owner": uidString(stranger) + "\n"})
	got, err := w.hooks(Before)
	if err != nil || len(got) != 3 {
		t.Errorf("%v, %v", got, err)
	}
	w.ok(os.Lchown(w.path(ofAgent+"pre.d/10-a"), stranger, stranger))
	if got, err := w.hooks(Before); got != nil || !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("one of the user's in root's directory: %v, %v", got, err)
	}
	w.give("agent/coder.d", stranger)
	w.ok(os.Lchown(w.path(ofAgent+"pre.d/10-a"), 0, 0))
	if got, err = w.hooks(Before); err != nil || len(got) != 3 {
		t.Errorf("one of root's in the user's directory: %v, %v", got, err)
	}
	w.ok(os.Chmod(w.path(ofAgent+"pre.d/10-a"), 0o700))
	if got, err := w.hooks(Before); got != nil || err == nil {
		t.Errorf("one that the agent may not execute: %v, %v", got, err)
	}
}

// TestHooksAreInNoView: nothing inside is called hooks.
func TestHooksAreInNoView(t *testing.T) {
	w := hooked(t)
	w.write("agent/coder.d/hooks/post.d/secret", "#!/bin/sh\n", 0o755)
	p := w.prepare(w.load())
	w.ok(filepath.WalkDir(p.Dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.Name() == HooksDir || strings.Contains(path, "post.d")) {
			t.Errorf("%s is shown", path)
		}
		return err
	}))
}
