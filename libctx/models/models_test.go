package models

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
)

// stranger is a user that is not the test's own; being it needs root.
const stranger = 60001

func isRoot() bool { return os.Geteuid() == 0 }

func self() uint32 { return uint32(os.Geteuid()) }

// world is a tree for one test, in the mode of whoever runs it.
type world struct {
	testing.TB
	paths.Layout
}

// newWorld makes a tree with the model p/m, of 8000 tokens, and the alias main
// that leads to it.
func newWorld(t testing.TB) *world {
	t.Helper()
	top := t.TempDir()
	// Other users must be able to walk in.
	for dir := top; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t, paths.Layout{Root: filepath.Join(top, "tree"), System: isRoot()}}
	w.model("p/m", map[string]string{"limit": "8000\n", "max_output": "500\n", "driver": "openai.chat\n", "cap": "chat\nstream\n",
		"effort": "low\n", "default": "a=1\nb=x=y\n", "fallback": "p/other\n"})
	w.link("model/main", "p/m")
	return w
}

func (w *world) path(rel string) string { return filepath.Join(w.Root, rel) }

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) dir(rel string) {
	w.Helper()
	if _, err := os.Stat(w.path(rel)); err == nil {
		return
	}
	if rel != "." {
		w.dir(filepath.Dir(rel))
	}
	w.ok(os.Mkdir(w.path(rel), 0o700))
	w.ok(os.Chmod(w.path(rel), 0o755))
}

func (w *world) write(rel, text string) {
	w.Helper()
	w.dir(filepath.Dir(rel))
	w.ok(os.WriteFile(w.path(rel), []byte(text), 0o600))
	w.ok(os.Chmod(w.path(rel), 0o644))
}

func (w *world) model(id string, files map[string]string) {
	w.Helper()
	w.write("model/"+id+".d/id", id+"\n")
	for file, text := range files {
		w.write("model/"+id+".d/"+file, text)
	}
}

func (w *world) link(rel, text string) {
	w.Helper()
	w.dir(filepath.Dir(rel))
	w.ok(os.Symlink(text, w.path(rel)))
}

// want checks kind and words of an error.
func want(t testing.TB, err error, kind errdefs.Kind, words ...string) {
	t.Helper()
	if !errdefs.Is(err, kind) {
		t.Errorf("error %v (%s), want %s", err, errdefs.KindOf(err), kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("error is not one inert line: %q", err)
	}
}

func TestLoad(t *testing.T) {
	w := newWorld(t)
	m, err := Load(w.Layout, "p/m")
	w.ok(err)
	if m.ID != "p/m" || m.Driver != "openai.chat" || m.Limit != 8000 || m.MaxOutput != 500 || m.Effort != "low" ||
		!slices.Equal(m.Cap, []string{"chat", "stream"}) || !slices.Equal(m.Fallback, []libctx.Model{"p/other"}) ||
		len(m.Default) != 2 || m.Default["a"] != "1" || m.Default["b"] != "x=y" {
		t.Errorf("%+v", m)
	}
	w.model("p/bare", nil)
	m, err = Load(w.Layout, "p/bare")
	w.ok(err)
	if m.Limit.Known() || m.MaxOutput != 0 || m.Effort != control.EffortAuto || m.Default != nil || m.Fallback != nil {
		t.Errorf("%+v", m)
	}
	for _, id := range []libctx.Model{"p/none", "none/m"} {
		_, err = Load(w.Layout, id)
		want(t, err, errdefs.NotFound, string(id))
	}
	_, err = Load(w.Layout, "main")
	want(t, err, errdefs.Invalid, "is an alias")
	_, err = Load(w.Layout, "../p")
	want(t, err, errdefs.Invalid)
	_, err = Load(paths.Layout{Root: w.path("nowhere")}, "p/m")
	want(t, err, errdefs.NotFound)
}

func TestLoadRefusesWhatDoesNotParse(t *testing.T) {
	for file, bad := range map[string]string{
		"limit": "08000\n", "max_output": "many\n", "driver": "a b\n", "cap": "fly\n", "effort": "max\n",
		"default": "x\n", "fallback": "main\n", "id": "p/other\n",
	} {
		w := newWorld(t)
		w.write("model/p/m.d/"+file, bad)
		_, err := Load(w.Layout, "p/m")
		want(t, err, errdefs.Invalid, "model p/m: model/p/m.d/"+file)
	}
	w := newWorld(t)
	w.write("model/p/m.d/limit", strings.Repeat("1", libctx.MaxControlFile+1))
	_, err := Load(w.Layout, "p/m")
	want(t, err, errdefs.TooBig)
	w = newWorld(t)
	w.ok(os.Remove(w.path("model/p/m.d/id")))
	_, err = Load(w.Layout, "p/m")
	want(t, err, errdefs.Invalid, "id: is not there")
}

// What somebody else could have put there is refused by name, whichever
// component it is.
func TestLoadRefusesWhatCanNotBeBelieved(t *testing.T) {
	for _, rel := range []string{".", "model", "model/p", "model/p/m.d", "model/p/m.d/limit"} {
		w := newWorld(t)
		w.ok(os.Chmod(w.path(rel), 0o777))
		_, err := Load(w.Layout, "p/m")
		want(t, err, errdefs.Denied, "can be written by others")
		if isRoot() {
			w = newWorld(t)
			w.ok(os.Chown(w.path(rel), stranger, stranger))
			_, err := Load(w.Layout, "p/m")
			want(t, err, errdefs.Denied, "belongs to uid 60001")
		}
	}
	for _, rel := range []string{"model", "model/p", "model/p/m.d", "model/p/m.d/limit"} {
		w := newWorld(t)
		w.ok(errors.Join(os.Rename(w.path(rel), w.path(rel)+".away"), os.Symlink(w.path(rel)+".away", w.path(rel))))
		_, err := Load(w.Layout, "p/m")
		want(t, err, errdefs.Denied, "a link")
	}
	w := newWorld(t)
	w.ok(errors.Join(os.Remove(w.path("model/p/m.d/limit")), os.Mkdir(w.path("model/p/m.d/limit"), 0o755)))
	if _, err := Load(w.Layout, "p/m"); err == nil {
		t.Error("a directory is read as a file")
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	mine := "home/" + strconv.Itoa(os.Geteuid()) + "/model/"
	w.link(mine+"fast", "p/fast")
	w.link(mine+"far", "../../../model/p/far")
	w.link("model/both", "p/trees")
	w.link(mine+"both", "p/mine")
	for name, id := range map[libctx.Model]libctx.Model{
		"p/m": "p/m", "x/not-there": "x/not-there", "main": "p/m", "fast": "p/fast", "far": "p/far", "both": "p/mine",
	} {
		if got, err := Resolve(w.Layout, self(), name); err != nil || got != id {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, err := Shared(w.Layout, "both"); err != nil || got != "p/trees" {
		t.Errorf("the tree's both: %s, %v", got, err)
	}
	_, err := Shared(w.Layout, "fast")
	want(t, err, errdefs.NotFound, "model fast")
	// Another user has no word in it, and no share of it.
	if got, err := Resolve(w.Layout, self()+1, "both"); err != nil || got != "p/trees" {
		t.Errorf("another's both: %s, %v", got, err)
	}
	_, err = Resolve(w.Layout, self(), "none")
	want(t, err, errdefs.NotFound, "model none")
	for _, bad := range []libctx.Model{"", "..", "a/b/c", "p/..", "a\x00"} {
		_, err := Resolve(w.Layout, self(), bad)
		want(t, err, errdefs.Invalid)
	}
}

func TestResolveRefuses(t *testing.T) {
	mine := "home/" + strconv.Itoa(os.Geteuid()) + "/model"
	for _, c := range []struct{ link, text, why string }{
		{"model/x", "main", "is not PROVIDER/MODEL"}, // an alias of an alias
		{"model/x", "/etc/passwd", "is not PROVIDER/MODEL"},
		{"model/x", "../model/p/m", "is not PROVIDER/MODEL"},
		{"model/x", "../../../model/p/m", "is not PROVIDER/MODEL"},
		{"model/x", "p/m/", "is not PROVIDER/MODEL"},
		{"model/x", "p/" + strings.Repeat("m", 300), "is not PROVIDER/MODEL"},
		{"model/x", "p/\x1b[2J\nm", "is not PROVIDER/MODEL"},
		{mine + "/x", "../../model/p/m", "is not PROVIDER/MODEL"},
		{mine + "/x", "../../../model/main", "is not PROVIDER/MODEL"},
	} {
		w := newWorld(t)
		w.link(c.link, c.text)
		_, err := Resolve(w.Layout, self(), "x")
		want(t, err, errdefs.Invalid, c.why, c.link)
	}
	w := newWorld(t)
	_, err := Resolve(w.Layout, self(), "p") // a provider
	want(t, err, errdefs.Invalid, "is no alias")
	w.write("model/file", "p/m")
	_, err = Resolve(w.Layout, self(), "file")
	want(t, err, errdefs.Invalid, "is no alias")

	// A user's directory of aliases that others may write, or that is a link,
	// hides none of the tree's: it is refused.
	w.link(mine+"/main", "p/m")
	w.ok(os.Chmod(w.path(mine), 0o777))
	_, err = Resolve(w.Layout, self(), "main")
	want(t, err, errdefs.Denied, "can be written by others")
	w.ok(errors.Join(os.RemoveAll(w.path(mine)), os.Symlink(t.TempDir(), w.path(mine))))
	_, err = Resolve(w.Layout, self(), "main")
	want(t, err, errdefs.Denied, "a link")

	if isRoot() {
		w := newWorld(t)
		w.ok(os.Lchown(w.path("model/main"), stranger, stranger))
		_, err := Resolve(w.Layout, self(), "main")
		want(t, err, errdefs.Denied, "model/main: belongs to uid 60001")
	}
}

// An alias of the user's own in a tree that is another's is marked: the policy
// may not be the user's.
func TestFindTellsWhoseAliasItIs(t *testing.T) {
	w := newWorld(t)
	w.link("home/"+strconv.Itoa(os.Geteuid())+"/model/fast", "p/fast")
	for _, name := range []libctx.Model{"p/m", "main", "fast"} {
		if ref, err := Find(w.Layout, self(), name); err != nil || ref.Own || ref.Name != name || ref.InHome != (name == "fast") {
			t.Errorf("%+v, %v", ref, err)
		}
	}
	if !isRoot() {
		return // one user has no tree of another
	}
	w.link("home/60001/model/main", "p/expensive")
	w.link("home/60001/model/main2", "p/m")
	w.ok(filepath.Walk(w.path("home/60001"), func(p string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(p, stranger, stranger))
	}))
	ref, err := Find(w.Layout, stranger, "main")
	if err != nil || ref != (Ref{"main", "p/expensive", true, true}) {
		t.Errorf("%+v, %v", ref, err)
	}
	w.ok(os.Chmod(w.path("home/60001"), 0o700))
	if ref, err = Find(w.Layout, stranger, "main2"); err != nil || !ref.Own {
		t.Errorf("in a private home: %+v, %v", ref, err)
	}
	// A link the user made with another's name on it: only the user's count.
	w.ok(os.Lchown(w.path("home/60001/model/main"), stranger+1, stranger+1))
	_, err = Find(w.Layout, stranger, "main")
	want(t, err, errdefs.Denied, "belongs to uid 60002")
}

func TestList(t *testing.T) {
	w := newWorld(t)
	w.model("a/z", nil)
	w.model("p/broken", map[string]string{"limit": "x\n"})
	w.link("home/"+strconv.Itoa(os.Geteuid())+"/model/fast", "a/z")
	w.link("model/bad", "nowhere")
	w.write("model/.hidden", "")
	w.write("model/p/README", "")
	models, aliases, err := List(w.Layout, self())
	w.ok(err)
	var ids []string
	for _, e := range models {
		ids = append(ids, string(e.ID))
		if (e.Model == nil) != (e.Err != nil) || (e.Err != nil) != (e.ID == "p/broken") {
			t.Errorf("%+v", e)
		}
	}
	if got := strings.Join(ids, " "); got != "a/z p/broken p/m" {
		t.Errorf("models %s", got)
	}
	var names []string
	for _, a := range aliases {
		names = append(names, string(a.Name)+">"+string(a.Target))
		if a.Own != (a.Name == "fast") || (a.Err != nil) != (a.Name == "bad") {
			t.Errorf("%+v", a)
		}
	}
	if got := strings.Join(names, " "); got != "fast>a/z bad> main>p/m" {
		t.Errorf("aliases %s", got)
	}
	if list, err := OfProvider(w.Layout, "none"); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := OfProvider(w.Layout, "a"); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.model("p/unknown", map[string]string{"limit": "unknown\n"})
	w.model("p/silent", nil)
	for _, c := range []struct {
		window control.Window
		name   libctx.Model
		why    string // "" is accepted
	}{
		{0, "p/m", ""}, {0, "p/unknown", ""}, {0, "p/none", ""}, {0, "nowhere", ""},
		{1, "p/m", ""}, {8000, "p/m", ""}, {8000, "main", ""},
		{8001, "p/m", "over the model's limit of 8000"},
		{8001, "main", "over the model's limit of 8000"},
		{1<<32 - 1, "p/m", "over"},
		{1, "p/unknown", "not known"}, {1, "p/silent", "not known"}, {1, "p/none", "not known"}, {1, "nowhere", "not known"},
	} {
		err := Check(w.Layout, c.window, c.name, self())
		if c.why == "" {
			if err != nil {
				t.Errorf("%d %s: %v", c.window, c.name, err)
			}
			continue
		}
		want(t, err, errdefs.Invalid, c.why)
	}
}
