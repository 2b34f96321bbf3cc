package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

const secret = "sk-very-secret-0123456789"

// world is a tree with a configuration of its own.
type world struct {
	t *testing.T
	caller.Caller
	out, err bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	w := &world{t: t}
	w.Layout = paths.New(paths.Env{UID: os.Geteuid(), Home: top}, filepath.Join(top, "tree"))
	w.Layout.Runtime, w.Layout.Config, w.Layout.Secrets = t.TempDir(), filepath.Join(top, "config"), filepath.Join(top, "config/secrets")
	w.Printer = &output.Printer{Out: &w.out, Err: &w.err}
	w.In = strings.NewReader("")
	w.Interrupts = func() (<-chan os.Signal, func()) { return nil, func() {} }
	if _, err := tree.Init(w.Layout, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// want checks an error's kind and words, hint included.
func (w *world) want(err error, kind errdefs.Kind, words string) {
	w.t.Helper()
	if !errdefs.Is(err, kind) || !strings.Contains(err.Error()+errdefs.HintOf(err), words) {
		w.t.Errorf("error %v (%s), want %s with %q", err, errdefs.KindOf(err), kind, words)
	}
	if err != nil && strings.Contains(err.Error()+errdefs.HintOf(err)+w.out.String()+w.err.String(), secret) {
		w.t.Errorf("the key is shown: %v", err)
	}
}

// gone: neither the provider nor a model of it is there.
func (w *world) gone(name string) {
	w.t.Helper()
	if _, err := provider.Load(w.Layout, name); !errdefs.Is(err, errdefs.NotFound) {
		w.t.Errorf("provider %s: %v", name, err)
	}
	if left, err := models.OfProvider(w.Layout, name); err != nil || len(left) > 0 {
		w.t.Errorf("models of %s: %v, %v", name, left, err)
	}
}

func (w *world) model(id libctx.Model) *models.Model {
	w.t.Helper()
	m, err := models.Load(w.Layout, id)
	w.ok(err)
	return m
}

func local(models ...string) AddOptions {
	return AddOptions{BaseURL: "http://127.0.0.1:9/v1/", NoKey: true, Models: models}
}

func TestAddAndRemove(t *testing.T) {
	w := newWorld(t)
	o := local("b", "vendor/a:latest")
	o.Limits, o.MaxOutputs = []string{"vendor/a:latest=4000", "8000"}, []string{"100"}
	w.ok(Add(&w.Caller, "p", o))
	p, err := provider.Load(w.Layout, "p")
	w.ok(err)
	if p.BaseURL != "http://127.0.0.1:9/v1" || p.Format != "openai.chat" || p.Key != provider.KeyNone || len(p.Models) != 2 {
		t.Errorf("%+v", p)
	}
	if a := w.model("p/vendor-a-latest"); a.Limit != 4000 || a.MaxOutput != 100 || a.Driver != "openai.chat" {
		t.Errorf("%+v", a)
	}
	if m, ok := p.Model("vendor-a-latest"); !ok || m.ID != "vendor/a:latest" {
		t.Errorf("%+v", p.Models)
	}
	if b := w.model("p/b"); b.Limit != 8000 {
		t.Errorf("%+v", b)
	}

	// More models, and another limit; the rest stays.
	w.ok(Add(&w.Caller, "p", AddOptions{Models: []string{"c", "b"}, Limits: []string{"b=16000"}}))
	if b, c := w.model("p/b"), w.model("p/c"); b.Limit != 16000 || c.Limit.Known() || w.model("p/vendor-a-latest").Limit != 4000 {
		t.Errorf("%+v %+v", b, c)
	}
	w.want(Add(&w.Caller, "p", local("d")), errdefs.Exists, "ctx provider remove p")

	w.ok(List(&w.Caller))
	if got := w.out.String(); !strings.HasSuffix(got, "p\topenai.chat\thttp://127.0.0.1:9/v1\tnone\t3\n") {
		t.Errorf("%q", got)
	}
	w.ok(tree.NewAgent(w.Layout, tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Model: "p/b"}))
	w.err.Reset()
	w.ok(Remove(&w.Caller, "p"))
	w.gone("p")
	if !strings.Contains(w.err.String(), "agent coder: its model p/b is gone") {
		t.Errorf("%q", w.err.String())
	}
	w.want(Remove(&w.Caller, "p"), errdefs.NotFound, "p")
}

// What is left of a provider can be removed, whatever is wrong with it.
func TestRemoveOfRemains(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.Layout.Providers(), "p.json")
	for what, damage := range map[string]func() error{
		"no file":     func() error { return os.Remove(file) },
		"broken file": func() error { return os.WriteFile(file, []byte("{"), 0o600) },
		"loose file":  func() error { return os.Chmod(file, 0o666) },
		"no models":   func() error { return os.RemoveAll(filepath.Join(w.Layout.Root, "model/p")) },
		"broken model": func() error {
			return os.WriteFile(filepath.Join(w.Layout.Root, "model/p/m.d/limit"), []byte("x"), 0o644)
		},
	} {
		w.ok(Add(&w.Caller, "p", local("m")))
		w.ok(damage())
		if err := Remove(&w.Caller, "p"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		w.gone("p")
	}
	w.want(Remove(&w.Caller, "debug"), errdefs.Invalid, "built in")
	w.want(Remove(&w.Caller, "../debug"), errdefs.Invalid, "")
	w.model("debug/echo")
}

func TestPresets(t *testing.T) {
	w := newWorld(t)
	for _, p := range provider.Presets() {
		w.ok(Add(&w.Caller, "x-"+p.Name, AddOptions{Preset: p.Name, Models: []string{"m"}}))
	}
	w.ok(Add(&w.Caller, "local", AddOptions{Preset: "llama.cpp", BaseURL: "http://127.0.0.1:8081/v1/", Format: "openai.responses", Models: []string{"m"}}))
	w.out.Reset()
	w.JSON = true
	w.ok(List(&w.Caller))
	for _, line := range []string{
		`{"provider":"local","format":"openai.responses","base_url":"http://127.0.0.1:8081/v1","key":"none","models":["local/m"],"error":""}`,
		`{"provider":"x-ollama","format":"openai.chat","base_url":"http://127.0.0.1:11434/v1","key":"none","models":["x-ollama/m"],"error":""}`,
		`{"provider":"x-openai","format":"openai.responses","base_url":"https://api.openai.com/v1","key":"missing","models":["x-openai/m"],"error":""}`,
		`{"provider":"x-anthropic","format":"anthropic.messages","base_url":"https://api.anthropic.com","key":"missing","models":["x-anthropic/m"],"error":""}`,
	} {
		if !strings.Contains(w.out.String(), line+"\n") {
			t.Errorf("no %s in %s", line, w.out.String())
		}
	}
}

// A limit that nobody says comes from the table, of that service alone.
func TestKnownLimits(t *testing.T) {
	w := newWorld(t)
	w.ok(Add(&w.Caller, "work", AddOptions{Preset: "openai", Models: []string{"gpt-4o", "o3", "gpt-mine"}, Limits: []string{"o3=1000"}}))
	w.ok(Add(&w.Caller, "work", AddOptions{Models: []string{"gpt-4o-mini"}}))
	w.ok(Add(&w.Caller, "openai", local("gpt-4o")))
	for id, want := range map[libctx.Model]uint32{"work/gpt-4o": 128000, "work/gpt-4o-mini": 128000, "work/o3": 1000, "work/gpt-mine": 0, "openai/gpt-4o": 0} {
		if got := w.model(id).Limit; uint32(got) != want {
			t.Errorf("%s: %d", id, got)
		}
	}
}

// A provider uses the key of one slot at a time; which, is said without anything
// else.
func TestSlots(t *testing.T) {
	w := newWorld(t)
	o := local("m")
	o.NoKey, o.Slot = false, "work"
	w.ok(Add(&w.Caller, "p", o))
	slot := func() string {
		p, err := provider.Load(w.Layout, "p")
		w.ok(err)
		if len(p.Models) != 1 {
			t.Errorf("%+v", p.Models)
		}
		return p.Slot()
	}
	if slot() != "work" {
		t.Error(slot())
	}
	w.In = strings.NewReader(secret + "\n")
	w.ok(SetKey(&w.Caller, "p", "", nil))
	if key, err := provider.Key(w.Layout, "p", "work"); err != nil || key.Reveal() != secret {
		t.Error(err)
	}
	w.err.Reset()
	w.ok(Add(&w.Caller, "p", AddOptions{Slot: "home"}))
	if slot() != "home" || !strings.Contains(w.err.String(), "ctx provider key p") {
		t.Errorf("%s, %q", slot(), w.err.String())
	}
	w.ok(Add(&w.Caller, "p", AddOptions{Slot: "default", Models: []string{"m"}, Limits: []string{"5"}}))
	if slot() != "default" || w.model("p/m").Limit != 5 {
		t.Error(slot())
	}
	for _, bad := range []string{"../x", "a/b", ".x", strings.Repeat("s", 100)} {
		w.want(Add(&w.Caller, "p", AddOptions{Slot: bad}), errdefs.Invalid, "key_slot")
	}
	w.want(Add(&w.Caller, "p", AddOptions{Slot: "home", Limits: []string{"5"}}), errdefs.Invalid, "no model is named")
	w.want(Add(&w.Caller, "q", AddOptions{Slot: "home"}), errdefs.Invalid, "--preset")
	w.want(Add(&w.Caller, "q", AddOptions{Slot: "home", Preset: "ollama", Models: []string{"m"}}), errdefs.Invalid, "no key")
	if slot() != "default" {
		t.Error(slot())
	}
}

// What is refused leaves nothing behind.
func TestAddRefuses(t *testing.T) {
	w := newWorld(t)
	for words, o := range map[string]AddOptions{
		"no model is named":          {BaseURL: "http://127.0.0.1:9/v1"},
		"--preset":                   {Models: []string{"m"}},
		"the presets are":            {Preset: "nobody", Models: []string{"m"}},
		"is none of":                 {BaseURL: "http://127.0.0.1:9/v1", Format: "other", Models: []string{"m"}},
		"plain http":                 {BaseURL: "http://example.org/v1", Models: []string{"m"}},
		"holds a query or fragment":  {BaseURL: "https://example.org/v1?key=" + secret, Models: []string{"m"}},
		"is a Unix socket":           {BaseURL: "unix:/run/llama.sock", Models: []string{"m"}},
		"UNIX-CONNECT:/run/llama":    {BaseURL: "/run/llama.sock", Models: []string{"m"}},
		"does not begin with":        {BaseURL: "/v1", Models: []string{"m"}},
		"user name or password":      {BaseURL: "https://u:" + secret + "@example.org/v1", Models: []string{"m"}},
		"would both be called p/a-b": {BaseURL: "https://example.org/v1", Models: []string{"a:b", "a/b"}},
		"positive number of tokens":  {BaseURL: "https://example.org/v1", Models: []string{"m"}, Limits: []string{"0"}},
		`"other" is no --model`:      {BaseURL: "https://example.org/v1", Models: []string{"m"}, Limits: []string{"other=5"}},
		"more than limit":            {BaseURL: "https://example.org/v1", Models: []string{"m"}, Limits: []string{"5"}, MaxOutputs: []string{"6"}},
		"id is not":                  {BaseURL: "https://example.org/v1", Models: []string{""}},
	} {
		w.want(Add(&w.Caller, "p", o), errdefs.Invalid, words)
		w.gone("p")
	}
	for _, name := range []string{"debug", "../p", "a/b", "", ".p"} {
		w.want(Add(&w.Caller, name, local("m")), errdefs.Invalid, "")
	}
	// A tree that can not take the models gets no provider.
	w.ok(errors.Join(os.RemoveAll(filepath.Join(w.Layout.Root, "model")), os.Symlink(t.TempDir(), filepath.Join(w.Layout.Root, "model"))))
	if err := Add(&w.Caller, "p", local("m")); err == nil {
		t.Error("models were made through a link")
	}
	if _, err := provider.Load(w.Layout, "p"); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

// An agent's explicit window holds the provider it rests on.
func TestWindowsHoldProviders(t *testing.T) {
	w := newWorld(t)
	o := local("m", "n")
	o.Limits = []string{"8000"}
	w.ok(Add(&w.Caller, "p", o))
	w.ok(provider.SetKey(w.Layout, "p", "default", provider.NewSecret(secret)))
	w.ok(tree.NewAgent(w.Layout, tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Model: "p/m"}))
	w.ok(tree.SetControl(w.Layout, "coder", "window", []byte("6000")))
	w.want(Remove(&w.Caller, "p"), errdefs.Invalid, "agent coder")
	for _, limits := range [][]string{nil, {"5000"}} {
		w.want(Add(&w.Caller, "p", AddOptions{Models: []string{"m"}, Limits: limits}), errdefs.Invalid, "agent coder")
	}
	p, err := provider.Load(w.Layout, "p")
	w.ok(err)
	if has, err := provider.HasKey(w.Layout, "p", "default"); !has || err != nil || len(p.Models) != 2 || p.Models[0].Limit != 8000 || w.model("p/m").Limit != 8000 {
		t.Errorf("refused changes left %+v, key %v %v", p, has, err)
	}
	w.ok(Add(&w.Caller, "p", AddOptions{Models: []string{"m"}, Limits: []string{"6000"}}))
	w.ok(tree.SetControl(w.Layout, "coder", "window", []byte("auto")))
	w.ok(Remove(&w.Caller, "p"))
	if has, err := provider.HasKey(w.Layout, "p", "default"); has || err != nil {
		t.Errorf("the key outlives its provider: %v, %v", has, err)
	}
}

func TestKey(t *testing.T) {
	w := newWorld(t)
	o := local("m")
	o.NoKey = false
	w.ok(Add(&w.Caller, "p", o))
	give := func(text, slot string, words ...string) error {
		w.In = strings.NewReader(text)
		return SetKey(&w.Caller, "p", slot, words)
	}
	kept := func(slot string) string {
		key, err := provider.Key(w.Layout, "p", slot)
		if err != nil {
			return err.Error()
		}
		return key.Reveal()
	}
	w.want(give("", "", secret), errdefs.Invalid, "never an argument")
	w.want(give(secret, "", "-"), errdefs.Invalid, "never an argument")
	for _, bad := range []string{"", "\n", "seven77", secret + "\n" + secret + "\n", secret + " x", secret + "\x00", "\xff", " " + secret, secret + " ", "schlüssel", "\ufeff" + secret, secret + "\n\n", strings.Repeat("k", 1<<16)} {
		w.want(give(bad, ""), errdefs.Invalid, "")
	}
	w.want(give(secret, "../x"), errdefs.Invalid, "")
	if _, err := os.Stat(filepath.Join(w.Layout.Keys(), "p", "default")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused key was kept: %v", err)
	}
	for _, text := range []string{secret, secret + "\n", secret + "\r\n"} {
		w.ok(give(text, ""))
		if got := kept("default"); got != secret {
			t.Errorf("%q is kept as %q", text, got)
		}
	}
	w.ok(give("another1\n", "second"))
	if kept("default") != secret || kept("second") != "another1" {
		t.Errorf("%q %q", kept("default"), kept("second"))
	}
	st, err := os.Stat(filepath.Join(w.Layout.Keys(), "p", "default"))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	w.ok(List(&w.Caller))
	if all := w.out.String() + w.err.String(); strings.Contains(all, secret) || !strings.Contains(all, "\tset\t") {
		t.Errorf("%s", all)
	}
	w.want(SetKey(&w.Caller, "none", "", nil), errdefs.NotFound, "none")
}

// serve answers one request on the model socket.
func (w *world) serve(frames ...string) (request <-chan string) {
	w.t.Helper()
	l, err := net.Listen("unix", w.Layout.ModelSocket())
	w.ok(err)
	got := make(chan string, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		c, err := l.Accept()
		l.Close()
		if err != nil {
			return
		}
		defer c.Close()
		line, _ := wire.NewLines(c, libctx.MaxModelFrame).Next()
		got <- string(line)
		fmt.Fprintln(c, strings.Join(frames, "\n"))
	}()
	w.t.Cleanup(func() { l.Close(); <-over })
	return got
}

// TestInsecure: what is said to help is a flag, and helps.
func TestInsecure(t *testing.T) {
	w := newWorld(t)
	o := AddOptions{BaseURL: "http://models.example/v1", Models: []string{"m"}, NoKey: true}
	w.want(Add(&w.Caller, "p", o), errdefs.Invalid, "--insecure")
	o.Insecure = true
	w.ok(Add(&w.Caller, "p", o))
}

func TestTest(t *testing.T) {
	w := newWorld(t)
	w.ok(Add(&w.Caller, "p", local("m")))
	w.out.Reset()
	sent := w.serve(`{"type":"verdict","ok":true,"model":"p/m","duration_ms":12}`, `{"type":"done","status":"ok"}`)
	w.ok(Test(context.Background(), &w.Caller, "p", "m"))
	if got := <-sent; got != `{"op":"probe","provider":"p","model":"p/m"}` {
		t.Errorf("sent %s", got)
	}
	if w.out.String() != "provider\tp\nmodel\tp/m\nverdict\tok in 12 ms\n" {
		t.Errorf("%q", w.out.String())
	}
	w.out.Reset()
	w.JSON = true
	f := modelwire.Fail(errdefs.Denied, modelwire.PhaseProvider, modelwire.ClassAuth, "the key is wrong")
	line, err := modelwire.MarshalFrame(&modelwire.Verdict{Model: "p/m", DurationMS: 3, Failure: f})
	w.ok(err)
	w.serve(strings.TrimSuffix(string(line), "\n"), `{"type":"done","status":"ok"}`)
	w.want(Test(context.Background(), &w.Caller, "p", ""), errdefs.Denied, "ctx provider key")
	if w.out.String() != `{"provider":"p","ok":false,"model":"p/m","duration_ms":3,"class":"auth","error":"the key is wrong"}`+"\n" {
		t.Errorf("%q", w.out.String())
	}
	for words, f := range map[string]*modelwire.Failure{
		"base URL right, and its format": {Code: errdefs.Provider, Phase: modelwire.PhaseHeaders, Status: 200, Class: modelwire.ClassOther, Message: "a web page came, not an answer: Sign in"},
		"ctx provider key NAME":          {Code: errdefs.NotFound, Phase: modelwire.PhasePreSend, Class: modelwire.ClassAuth, Message: "provider p has no key in slot default"},
		"base URL right? ctx":            {Code: errdefs.NotFound, Phase: modelwire.PhaseProvider, Status: 404, Class: modelwire.ClassInvalid, Message: "no such model"},
		"ctx provider ls shows where":    {Code: errdefs.Provider, Phase: modelwire.PhaseHeaders, Class: modelwire.ClassNetwork, Message: "reset"},
	} {
		line, err := modelwire.MarshalFrame(&modelwire.Verdict{Model: "p/m", Failure: f})
		w.ok(err)
		w.serve(strings.TrimSuffix(string(line), "\n"), `{"type":"done","status":"ok"}`)
		want := f.Code
		if f.Class == modelwire.ClassAuth { // whether there is a wrong key or none
			want = errdefs.Denied
		}
		w.want(Test(context.Background(), &w.Caller, "p", ""), want, words)
	}
	w.want(Test(context.Background(), &w.Caller, "none", ""), errdefs.NotFound, "none")
	w.want(Test(context.Background(), &w.Caller, "p", "other/m"), errdefs.Invalid, "not of provider p")
}

func TestDetect(t *testing.T) {
	w := newWorld(t)
	w.serve(`{"type":"found","name":"ollama","format":"openai.chat","base_url":"http://127.0.0.1:11434/v1","models":["a","b"]}`, `{"type":"done","status":"ok"}`)
	w.ok(Detect(context.Background(), &w.Caller))
	if !strings.HasSuffix(w.out.String(), "ollama\topenai.chat\thttp://127.0.0.1:11434/v1\ta b\n") {
		t.Errorf("%q", w.out.String())
	}
	w.serve(`{"type":"done","status":"ok"}`)
	w.ok(Detect(context.Background(), &w.Caller))
	if !strings.Contains(w.err.String(), "no known server") {
		t.Errorf("%q", w.err.String())
	}
}

// In another's tree nothing is changed, not even one's own configuration.
func TestAnothersTree(t *testing.T) {
	if os.Geteuid() != 0 {
		return // one user can not give a tree to another
	}
	w := newWorld(t)
	w.ok(os.Lchown(w.Layout.Root, 60001, 60001))
	w.want(Add(&w.Caller, "p", local("m")), errdefs.Denied, "owner's to change")
	w.want(Remove(&w.Caller, "p"), errdefs.Denied, "owner's to change")
	w.want(SetKey(&w.Caller, "p", "", nil), errdefs.Denied, "owner's to change")
	if _, err := os.Stat(w.Layout.Config); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
