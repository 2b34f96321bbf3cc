package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/tests/internal/scripted"
)

// A new key, another slot and another address are for the next request, without a
// restart; one that can not be a key, or that others can read, goes nowhere.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		fine := func(*scripted.Request) scripted.Answer { return stream(d.said([]string{"fine"}, nil, "")...) }
		s := scripted.New(t, fine)
		model := m.provider(s.URL, d.of)
		name := modelwire.ProviderOf(model)
		used := func() string {
			t.Helper()
			if got := m.ask(asks(model)).said(); got != "end; text fine" {
				return got
			}
			all := s.Requests()
			return d.key(all[len(all)-1].Header)
		}
		set := func(slot, text string) {
			t.Helper()
			if err := provider.SetKey(m.layout, name, slot, provider.NewSecret(text)); err != nil {
				t.Fatal(err)
			}
		}
		save := func(change func(*provider.Provider)) {
			t.Helper()
			p, err := provider.Load(m.layout, name)
			if err != nil {
				t.Fatal(err)
			}
			change(p)
			if err := provider.Save(m.layout, p); err != nil {
				t.Fatal(err)
			}
		}
		if got := used(); got != key {
			t.Errorf("first: %s", got)
		}
		set("default", "sk-second-0123456789")
		if got := used(); got != "sk-second-0123456789" {
			t.Errorf("a new key: %s", got)
		}
		save(func(p *provider.Provider) { p.KeySlot = "work" })
		if got := used(); got != "ENOENT pre_send 0 auth" {
			t.Errorf("a slot without a key: %s", got)
		}
		set("work", "sk-work-0123456789")
		if got := used(); got != "sk-work-0123456789" {
			t.Errorf("another slot: %s", got)
		}
		file := filepath.Join(m.layout.Keys(), name, "work")
		for what, text := range map[string]string{"a space": "sk a\n", "a line break": "sk-a\nsk-b\n", "a control character": "sk-\x1b[2J\n", "no ASCII": "schlüssel\n", "nothing": "\n"} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			a := m.ask(asks(model))
			if got := a.said(); got != "EINVAL pre_send 0 auth" {
				t.Errorf("%s: %s", what, got)
			}
			if strings.Contains(a.failure.Message, strings.TrimSpace(text)) && text != "\n" {
				t.Errorf("%s: the key is in %q", what, a.failure.Message)
			}
		}
		set("work", key)
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := used(); got != "EACCES pre_send 0 auth" {
			t.Errorf("a key for everybody: %s", got)
		}
		set("work", key)
		n := len(s.Requests())
		moved := scripted.New(t, fine)
		save(func(p *provider.Provider) { p.BaseURL = moved.URL })
		if got := m.ask(asks(model)).said(); got != "end; text fine" || len(s.Requests()) != n || len(moved.Requests()) != 1 {
			t.Errorf("moved: %s", got)
		}
	})
}

// The format's path comes behind that of the base URL.
func TestBaseURLs(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		s := scripted.New(t, func(*scripted.Request) scripted.Answer { return stream(d.said([]string{"fine"}, nil, "")...) })
		for i, path := range []string{"/gate/way", "/a%20b/ü", "/x:y@z"} {
			model := m.provider(s.URL, d.of, func(p *provider.Provider) { p.BaseURL = s.URL + strings.ReplaceAll(path, "ü", "%C3%BC") })
			want := strings.ReplaceAll(path, "%20", " ") + d.path
			if got := m.ask(asks(model)).said(); got != "end; text fine" || s.Requests()[i].Path != want {
				t.Errorf("%s: %s at %s, not %s", path, got, s.Requests()[i].Path, want)
			}
		}
	})
}

// A model that the provider's file does not have reaches nobody; what a web page
// says is its title.
func TestWrongPlaces(t *testing.T) {
	each(t, func(t *testing.T, m *ctxmodel, d *dialect) {
		s := scripted.New(t, scripted.InTurn(t, scripted.Status(200, "text/html", "<!doctype html><html><head><title>Sign in</title></head><body><form>"+strings.Repeat("x", 9000))))
		model := m.provider(s.URL, d.of)
		if got := m.ask(asks(libctx.Model(modelwire.ProviderOf(model) + "/none"))).said(); got != "ENOENT pre_send 0 invalid" {
			t.Errorf("no model: %s", got)
		}
		a := m.ask(asks(model))
		if got := a.said(); got != "EREMOTEIO headers 200 other accepted" || a.failure.Message != "HTTP 200: a web page came, not an answer: Sign in" {
			t.Errorf("a page: %s: %s", got, a.failure.Message)
		}
	})
}
