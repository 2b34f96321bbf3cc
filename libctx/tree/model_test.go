package tree

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spec is a model of a limit, 0 for unknown.
func spec(id libctx.Model, limit window.Size) ModelSpec {
	return ModelSpec{ID: id, Driver: "openai.chat", Cap: []string{control.CapChat}, Limit: limit}
}

// agent makes an agent that the model drives.
func agent(t testing.TB, l paths.Layout, name libctx.Agent, model libctx.Model) {
	t.Helper()
	ok(t, NewAgent(l, AgentSpec{Name: name, Owner: asuser.Self(), Model: model}))
}

func get(t testing.TB, l paths.Layout, a libctx.Agent, file string) string {
	t.Helper()
	text, err := GetControl(l, a, file)
	ok(t, err)
	return string(text)
}

func self() uint32 { return uint32(os.Geteuid()) }

func TestInitMakesModels(t *testing.T) {
	l := newTree(t)
	for _, name := range []libctx.Model{"debug/echo", "debug/tools", "debug/script", "main"} {
		id, err := models.Resolve(l, self(), name)
		ok(t, err)
		m, err := models.Load(l, id)
		if err != nil || m.Driver != "debug" || !m.Limit.Known() {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if st, err := os.Lstat(filepath.Join(l.Root, "model", string(id))); err != nil || st.Mode() != execPerm {
			t.Errorf("%s: %v, %v", id, st, err)
		}
	}
	// What people set stays, the rest is repaired.
	dir := filepath.Join(l.Root, "model")
	ok(t, errors.Join(
		os.WriteFile(filepath.Join(dir, "debug/script.d/default"), []byte("script=/x\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "debug/script.d/limit"), []byte("99\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "debug/script.d/driver"), []byte("other\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "debug/tools"), []byte("#!/bin/false\n"), 0o755),
		os.Remove(filepath.Join(dir, "main")), os.Symlink("debug/tools", filepath.Join(dir, "main")),
	))
	made, err := Init(l, nil)
	slices.Sort(made)
	if err != nil || strings.Join(made, " ") != "model/debug/script.d/driver model/debug/tools" {
		t.Errorf("repaired %q, %v", made, err)
	}
	m, err := models.Load(l, "debug/script")
	if err != nil || m.Limit != 99 || m.Default["script"] != "/x" || m.Driver != "debug" {
		t.Errorf("%+v, %v", m, err)
	}
	if id, err := models.Resolve(l, self(), "main"); err != nil || id != "debug/tools" {
		t.Errorf("main leads to %s, %v", id, err)
	}
	// An old tree gets them.
	ok(t, os.RemoveAll(dir))
	made, err = Init(l, nil)
	if err != nil || strings.Join(made, " ") != "model/ model/debug/echo model/debug/script model/debug/tools model/main" {
		t.Errorf("made %q, %v", made, err)
	}
}

func TestInitFollowsNoLinkOfModels(t *testing.T) {
	for _, rel := range []string{"model", "model/debug", "model/debug/echo.d", "model/debug/echo.d/id", "model/debug/echo"} {
		l := newTree(t)
		outside := t.TempDir()
		ok(t, errors.Join(os.RemoveAll(filepath.Join(l.Root, rel)), os.Symlink(outside, filepath.Join(l.Root, rel))))
		_, err := Init(l, nil)
		if replaced := rel == "model/debug/echo" || rel == "model/debug/echo.d/id"; (err == nil) != replaced {
			t.Errorf("%s: %v", rel, err)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Errorf("%s: wrote through a link: %v", rel, left)
		}
	}
}

// The entry of a model runs ctx of its own tree, wherever that is and by
// whatever name it was called.
func TestModelEntryRuns(t *testing.T) {
	l := paths.New(paths.Env{UID: os.Geteuid(), Home: t.TempDir()}, filepath.Join(t.TempDir(), "a b'$x", "model", "tree"))
	shown := filepath.Join(t.TempDir(), "ctx")
	ok(t, os.WriteFile(shown, []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\ncat\n"), 0o755))
	_, err := Init(l, map[string]string{"ctx": shown})
	ok(t, err)
	ok(t, os.Symlink("../../../model/debug/tools", filepath.Join(l.Home(self()), "model", "mine")))
	for rel, id := range map[string]string{
		"model/debug/echo": "debug/echo", "model/main": "debug/echo",
		"home/" + strconv.Itoa(os.Geteuid()) + "/model/mine": "debug/tools",
	} {
		for _, dir := range []string{l.Root, "/"} {
			call := rel
			if dir == "/" {
				call = filepath.Join(l.Root, rel)
			}
			c := exec.Command("./"+call, "hi there", "--x", "")
			if dir == "/" {
				c = exec.Command(call, "hi there", "--x", "")
			}
			c.Dir, c.Env, c.Stdin = dir, []string{}, strings.NewReader("input")
			out, err := c.CombinedOutput()
			want := "<--root><" + l.Root + "><model><run><--raw><" + id + "><--><hi there><--x><>input"
			if err != nil || string(out) != want {
				t.Errorf("%s: %s, %v, want %s", call, out, err, want)
			}
		}
	}
}

func TestAddAndRemoveModels(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/a", 8000), {ID: "p/b", Driver: "openai.chat", MaxOutput: 77}}))
	b, err := models.Load(l, "p/b")
	if err != nil || b.Limit.Known() || b.MaxOutput != 77 {
		t.Errorf("%+v, %v", b, err)
	}
	own := filepath.Join(l.Root, "model/p/b.d/fallback")
	ok(t, os.WriteFile(own, []byte("p/a\n"), 0o644))
	ok(t, AddModels(l, []ModelSpec{spec("p/b", 16000)}))
	if b, err = models.Load(l, "p/b"); err != nil || b.Limit != 16000 || b.MaxOutput != 0 || len(b.Fallback) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	for _, bad := range []ModelSpec{{ID: "p/x"}, {ID: "x", Driver: "d"}, {ID: "../x/y", Driver: "d"}, {ID: "p/x", Driver: "d", Cap: []string{"fly"}}} {
		want(t, AddModels(l, []ModelSpec{spec("p/good", 1), bad}), errdefs.Invalid, "")
	}
	if _, err := models.Load(l, "p/good"); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("half of a refused change was made: %v", err)
	}
	ok(t, RemoveModels(l, []libctx.Model{"p/a", "p/none", "none/x"}))
	ok(t, RemoveModels(l, []libctx.Model{"p/b"}))
	if left, err := os.ReadDir(filepath.Join(l.Root, "model")); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestModelsAreNotMadeThroughLinks(t *testing.T) {
	for _, rel := range []string{"model", "model/p", "model/p/a.d", "model/p/a"} {
		l := newTree(t)
		outside := t.TempDir()
		ok(t, AddModels(l, []ModelSpec{spec("p/a", 1)}))
		ok(t, errors.Join(os.RemoveAll(filepath.Join(l.Root, rel)), os.Symlink(outside, filepath.Join(l.Root, rel))))
		if err := AddModels(l, []ModelSpec{spec("p/a", 2)}); err == nil {
			t.Errorf("%s: a model was made through a link", rel)
		}
		ok(t, os.WriteFile(filepath.Join(outside, "keep"), nil, 0o600))
		_ = RemoveModels(l, []libctx.Model{"p/a"})
		if left, _ := os.ReadDir(outside); len(left) != 1 {
			t.Errorf("%s: something was made or removed through a link: %v", rel, left)
		}
	}
}

func TestAliases(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/a", 8000)}))
	ok(t, SetAlias(l, "main", "p/a", false))
	ok(t, SetAlias(l, "fast", "p/a", true))
	ok(t, SetAlias(l, "fast", "debug/tools", true))
	for name, id := range map[libctx.Model]libctx.Model{"main": "p/a", "fast": "debug/tools"} {
		if got, err := models.Resolve(l, self(), name); err != nil || got != id {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	want(t, SetAlias(l, "x", "p/none", false), errdefs.NotFound, "p/none")
	want(t, SetAlias(l, "p/x", "p/a", false), errdefs.Invalid, "full name")
	want(t, SetAlias(l, "../x", "p/a", false), errdefs.Invalid, "")
	want(t, SetAlias(l, "x", "main", false), errdefs.Invalid, "alias")
	want(t, SetAlias(l, "debug", "p/a", false), errdefs.Exists, "taken")
	want(t, RemoveAlias(l, "debug", false), errdefs.NotFound, "no alias")
	want(t, RemoveAlias(l, "fast", false), errdefs.NotFound, "no alias")
	ok(t, RemoveAlias(l, "fast", true))
	ok(t, RemoveAlias(l, "main", false))
	if _, err := models.Resolve(l, self(), "main"); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

// No command leaves an agent with a window that its model does not have, and
// what is refused changes nothing.
func TestWindowsStayValid(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/small", 8000), spec("p/large", 32000), spec("p/unknown", 0)}))
	ok(t, SetAlias(l, "main", "p/large", false))
	agent(t, l, "a", "p/large")
	agent(t, l, "b", "main")
	agent(t, l, "auto", "p/large")
	agent(t, l, "free", "p/unknown")
	set := func(a libctx.Agent, file, value string) error { return SetControl(l, a, file, []byte(value)) }

	want(t, set("a", "window", "32001"), errdefs.Invalid, "over the model's limit of 32000")
	want(t, set("free", "window", "1"), errdefs.Invalid, "not known")
	want(t, set("none", "window", "1"), errdefs.NotFound, `no agent "none"`)
	ok(t, set("a", "window", "16000"))
	ok(t, set("b", "window", "16000"))
	for _, model := range []string{"p/small", "p/unknown"} {
		want(t, set("a", "model", model), errdefs.Invalid, "window 16000")
	}
	for _, a := range []libctx.Agent{"a", "auto"} {
		for _, model := range []string{"p/none", "nowhere"} {
			want(t, set(a, "model", model), errdefs.NotFound, model)
		}
	}
	if got := get(t, l, "a", "model") + get(t, l, "a", "window"); got != "p/large\n16000\n" {
		t.Errorf("refused changes left %q", got)
	}
	ok(t, set("a", "model", "main"))
	ok(t, set("a", "model", "p/large"))

	large := spec("p/large", 32000)
	for _, limit := range []window.Size{15999, 0} {
		large.Limit = limit
		want(t, AddModels(l, []ModelSpec{spec("p/new", 1), large}), errdefs.Invalid, "agent a")
	}
	want(t, RemoveModels(l, []libctx.Model{"p/small", "p/large"}), errdefs.Invalid, "agent a")
	want(t, SetAlias(l, "main", "p/small", false), errdefs.Invalid, "agent b")
	want(t, SetAlias(l, "main", "p/small", true), errdefs.Invalid, "agent b")
	want(t, RemoveAlias(l, "main", false), errdefs.Invalid, "agent b")
	for _, id := range []libctx.Model{"p/small", "p/large"} {
		if _, err := models.Load(l, id); err != nil {
			t.Errorf("a refused removal removed: %v", err)
		}
	}
	if _, err := models.Load(l, "p/new"); err == nil {
		t.Error("a refused addition added")
	}

	// What changes nothing for anybody is done.
	large.Limit = 16000
	ok(t, AddModels(l, []ModelSpec{large}))
	ok(t, RemoveModels(l, []libctx.Model{"p/small", "p/unknown"}))
	ok(t, SetAlias(l, "main", "p/large", true))
	ok(t, RemoveAlias(l, "main", true)) // the tree's leads to the same
	ok(t, set("a", "window", "auto"))
	ok(t, set("b", "window", "auto"))
	ok(t, SetAlias(l, "main", "debug/echo", false))
	ok(t, RemoveModels(l, []libctx.Model{"p/large"}))
}

// A user's own alias hides the tree's: what the tree's does then is no matter.
func TestWindowOfAHiddenAlias(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/small", 8000), spec("p/large", 32000)}))
	ok(t, SetAlias(l, "x", "p/small", false))
	ok(t, SetAlias(l, "x", "p/large", true))
	agent(t, l, "a", "x")
	ok(t, SetControl(l, "a", "window", []byte("16000")))
	ok(t, SetAlias(l, "x", "debug/echo", false))
	ok(t, SetAlias(l, "x", "p/small", false))
	want(t, RemoveAlias(l, "x", true), errdefs.Invalid, "agent a")
	ok(t, RemoveAlias(l, "x", false))
	want(t, RemoveAlias(l, "x", true), errdefs.Invalid, "agent a")
}

// Two changes that are right one by one can not both win.
func TestWindowAndModelAtOnce(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/small", 8000), spec("p/large", 32000)}))
	agent(t, l, "a", "p/large")
	for range 8 {
		ok(t, SetControl(l, "a", "window", []byte("auto")))
		ok(t, SetControl(l, "a", "model", []byte("p/large")))
		var both sync.WaitGroup
		both.Go(func() { _ = SetControl(l, "a", "window", []byte("16000")) })
		both.Go(func() { _ = SetControl(l, "a", "model", []byte("p/small")) })
		both.Wait()
		if got := get(t, l, "a", "model") + get(t, l, "a", "window"); got == "p/small\n16000\n" || got == "p/large\nauto\n" {
			t.Fatalf("left %q", got)
		}
	}
}

// An agent that is broken already is no reason to refuse, and can be repaired.
func TestBrokenAgentsAreInNobodysWay(t *testing.T) {
	l := newTree(t)
	ok(t, AddModels(l, []ModelSpec{spec("p/a", 8000)}))
	agent(t, l, "a", "p/a")
	ok(t, os.WriteFile(filepath.Join(l.Control("a"), "window"), []byte("9000\n"), 0o644))
	ok(t, AddModels(l, []ModelSpec{spec("p/a", 7000)}))
	ok(t, RemoveModels(l, []libctx.Model{"p/a"}))
	want(t, SetControl(l, "a", "model", []byte("p/b")), errdefs.NotFound, "p/b")
	ok(t, SetControl(l, "a", "model", []byte("debug/echo")))
	ok(t, os.WriteFile(filepath.Join(l.Control("a"), "window"), []byte("many\n"), 0o644))
	ok(t, SetControl(l, "a", "model", []byte("debug/tools")))
	ok(t, SetControl(l, "a", "window", []byte("9000")))
}

func TestNewModelAgents(t *testing.T) {
	l := newTree(t)
	err := NewAgent(l, AgentSpec{Name: "x", Owner: asuser.Self(), Model: "p/none"})
	want(t, err, errdefs.NotFound, "p/none")
	err = NewAgent(l, AgentSpec{Name: "x", Owner: asuser.Self(), Model: "nowhere"})
	want(t, err, errdefs.NotFound, "nowhere")
	if _, err := os.Lstat(l.Control("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused agent left %v", err)
	}
	agent(t, l, "named", "debug/echo")
	agent(t, l, "main", "main")
	for a, line := range map[libctx.Agent]string{"named": "model:debug/echo", "main": "model:main"} {
		if p := get(t, l, a, "policy"); !strings.Contains(p, " "+line+" use\n") || strings.Contains(p, "network") {
			t.Errorf("%s: %q", a, p)
		}
	}
	uses, err := ModelUses(l)
	if err != nil || !slices.Equal(uses, []ModelUse{{"main", "main", "debug/echo"}, {"named", "debug/echo", "debug/echo"}}) {
		t.Errorf("%v, %v", uses, err)
	}
}

// In a tree of root an alias of the user's own is no name for a policy.
func TestPolicyOfAnOwnAlias(t *testing.T) {
	if os.Geteuid() != 0 {
		return // one user has no tree of another
	}
	const user = 60001
	l := newTree(t)
	for dir := l.Root; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		ok(t, os.Chmod(dir, 0o755))
	}
	home := filepath.Join(l.Home(user), "model")
	ok(t, os.MkdirAll(home, 0o700))
	ok(t, os.Symlink("debug/tools", filepath.Join(home, "main")))
	ok(t, filepath.Walk(l.Home(user), func(p string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(p, user, user))
	}))
	ok(t, NewAgent(l, AgentSpec{Name: "u", Owner: asuser.Identity{UID: user, GID: user}, Model: "main"}))
	if p := get(t, l, "u", "policy"); !strings.Contains(p, " model:debug/tools use\n") || strings.Contains(p, "model:main") {
		t.Errorf("%q", p)
	}
}
