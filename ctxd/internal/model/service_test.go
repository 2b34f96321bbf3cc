package model

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
)

// What a driver does wrong, and how it fails, becomes an answer all the same.
func TestDriversFail(t *testing.T) {
	start := func(g *modelwire.Generate) modelwire.Frame { return &modelwire.Start{Model: g.Model} }
	message := &modelwire.MessageFrame{Content: []wire.Part{wire.Text("yes")}, Stop: modelwire.StopEnd}
	for name, c := range map[string]struct {
		do       func(g *modelwire.Generate, out Sink) error
		frames   string
		code     errdefs.Kind
		class    string
		accepted bool
	}{
		"nothing": {func(*modelwire.Generate, Sink) error { return nil }, "error done", errdefs.Internal, modelwire.ClassOther, true},
		"no message": {func(g *modelwire.Generate, out Sink) error { return out.Send(start(g)) },
			"start error done", errdefs.Internal, modelwire.ClassOther, true},
		"no start": {func(_ *modelwire.Generate, out Sink) error { return out.Send(message) },
			"error done", errdefs.Internal, modelwire.ClassOther, true},
		"two messages, and no word of it": {func(g *modelwire.Generate, out Sink) error {
			return errors.Join(out.Send(start(g)), out.Send(message), ignore(out.Send(message)))
		}, "start message error done", errdefs.Internal, modelwire.ClassOther, true},
		"a done of its own": {func(g *modelwire.Generate, out Sink) error {
			return errors.Join(out.Send(start(g)), out.Send(message), ignore(out.Send(&modelwire.Done{Status: "error"})))
		}, "start message error done", errdefs.Internal, modelwire.ClassOther, true},
		"a defect": {func(*modelwire.Generate, Sink) error { return errors.New("oops") }, "error done", errdefs.Internal, modelwire.ClassOther, true},
		"text that is not UTF-8": {func(g *modelwire.Generate, out Sink) error {
			return errors.Join(out.Send(start(g)), out.Send(&modelwire.Delta{Text: "\xff"}))
		}, "start error done", errdefs.Internal, modelwire.ClassOther, true},
		"too much": {func(g *modelwire.Generate, out Sink) error {
			return errors.Join(out.Send(start(g)), out.Send(&modelwire.MessageFrame{Content: make([]wire.Part, 2000), Stop: modelwire.StopEnd}))
		}, "start error done", errdefs.Provider, modelwire.ClassLimit, true},
		"a failure": {func(*modelwire.Generate, Sink) error {
			return fmt.Errorf("wrapped: %w", modelwire.Fail(errdefs.Provider, modelwire.PhaseConnect, modelwire.ClassNetwork, "no"))
		}, "error done", errdefs.Provider, modelwire.ClassNetwork, false},
		"a failure after text": {func(g *modelwire.Generate, out Sink) error {
			return errors.Join(out.Send(start(g)), out.Send(&modelwire.Delta{Text: "y"}), modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassServer, "no"))
		}, "start delta error done", errdefs.Provider, modelwire.ClassServer, true},
		"a failure that is none": {func(*modelwire.Generate, Sink) error { return &modelwire.Failure{Message: "no"} },
			"error done", errdefs.Internal, modelwire.ClassOther, true},
		"a failure that quotes the key": {func(*modelwire.Generate, Sink) error {
			return modelwire.Fail(errdefs.Denied, modelwire.PhaseProvider, modelwire.ClassAuth, "%s is wrong", canary).WithCode("bad " + canary)
		}, "error done", errdefs.Denied, modelwire.ClassAuth, false},
		"a deadline": {func(*modelwire.Generate, Sink) error { return context.DeadlineExceeded }, "error done", errdefs.Timeout, modelwire.ClassInterrupted, true},
	} {
		b := serve(t, func(_ context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
			return c.do(g, out)
		}, nil)
		list := b.dial().say(hello).answer("generate")
		if got := kinds(list); got != c.frames {
			t.Errorf("%s: %s", name, got)
			continue
		}
		f := list[len(list)-2].(*modelwire.Error).Failure
		if f.Code != c.code || f.Class != c.class || f.Accepted != c.accepted || f.GenerationSeen != (strings.Contains(c.frames, "delta") || strings.Contains(c.frames, "message")) {
			t.Errorf("%s: %+v", name, f)
		}
		if strings.Contains(f.Message+f.ProviderCode, canary) {
			t.Errorf("%s: shows the key: %+v", name, f)
		}
	}
}

func ignore(error) error { return nil }

func TestDrop(t *testing.T) {
	b := serve(t, func(_ context.Context, _ *provider.Provider, _ provider.Secret, g *modelwire.Generate, out Sink) error {
		return errors.Join(out.Send(&modelwire.Start{Model: g.Model}), ErrDrop)
	}, nil)
	c := b.dial().say(hello)
	line, err := c.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, "start") {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := c.lines.ReadString('\n'); err == nil || line != "" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestKeysOfRequests(t *testing.T) {
	called := false
	b := serve(t, func(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error {
		called = true
		if p.Key == provider.KeyNone && !key.Empty() {
			return errors.New("a key that nobody wanted")
		}
		return simple(ctx, p, key, g, out)
	}, nil)
	file := filepath.Join(b.Layout.Keys(), "lab", provider.DefaultSlot)
	must(t, os.Chmod(file, 0o644))
	if f := b.dial().say(hello).fails("generate"); f.Code != errdefs.Denied || f.Class != modelwire.ClassAuth || f.Phase != modelwire.PhasePreSend || strings.Contains(f.Message, canary) {
		t.Errorf("%+v", f)
	}
	must(t, os.Remove(file))
	if f := b.dial().say(hello).fails("generate"); f.Code != errdefs.NotFound || f.Class != modelwire.ClassAuth || !strings.Contains(f.Message, "ctx provider key lab") {
		t.Errorf("%+v", f)
	}
	if called {
		t.Error("the driver was called without a key")
	}
	p, err := provider.Load(b.Layout, "lab")
	must(t, err)
	p.Key = provider.KeyNone
	must(t, provider.Save(b.Layout, p))
	if got := kinds(b.dial().say(hello).answer("generate")); got != "start delta message done" {
		t.Error(got)
	}
	b.Registry.Formats = nil
	if f := b.dial().say(hello).fails("generate"); f.Code != errdefs.Unsupported {
		t.Errorf("%+v", f)
	}
	must(t, os.WriteFile(filepath.Join(b.Layout.Providers(), "lab.json"), []byte("{}\n"), 0o600))
	if f := b.dial().say(hello).fails("generate"); f.Code != errdefs.Invalid || !strings.Contains(f.Message, "lab.json") {
		t.Errorf("%+v", f)
	}
}

func TestProbe(t *testing.T) {
	broken := false
	b := serve(t, func(ctx context.Context, p *provider.Provider, key provider.Secret, g *modelwire.Generate, out Sink) error {
		if broken {
			return modelwire.Fail(errdefs.Denied, modelwire.PhaseProvider, modelwire.ClassAuth, "no")
		}
		if g.MaxOutput == 0 || len(g.Tools) > 0 {
			return errors.New("not tiny")
		}
		return simple(ctx, p, key, g, out)
	}, nil)
	verdict := func(line string) *modelwire.Verdict {
		t.Helper()
		list := b.dial().say(line).answer("probe")
		if got := kinds(list); got != "verdict done" {
			t.Fatal(got)
		}
		return list[0].(*modelwire.Verdict)
	}
	if v := verdict(`{"op":"probe","provider":"lab"}`); !v.OK || v.Model != "lab/x" {
		t.Errorf("%+v", v)
	}
	if v := verdict(`{"op":"probe","provider":"debug"}`); !v.OK || v.Model != "debug/echo" {
		t.Errorf("%+v", v)
	}
	if v := verdict(`{"op":"probe","provider":"lab","model":"lab/y"}`); v.OK || v.Failure.Code != errdefs.NotFound {
		t.Errorf("%+v", v)
	}
	if v := verdict(`{"op":"probe","provider":"lob"}`); v.OK || v.Failure.Code != errdefs.NotFound {
		t.Errorf("%+v", v)
	}
	broken = true
	if v := verdict(`{"op":"probe","provider":"lab"}`); v.OK || v.Failure.Class != modelwire.ClassAuth {
		t.Errorf("%+v", v)
	}
}

func TestDetect(t *testing.T) {
	b := serve(t, simple, nil)
	if got := kinds(b.dial().say(`{"op":"detect"}`).answer("detect")); got != "done" {
		t.Error(got)
	}
	b = serve(t, simple, func(s *Server) {
		s.Registry.Detect = func(_ context.Context, found func(*modelwire.Found) error) error {
			return found(&modelwire.Found{Name: "ollama", Format: "openai.chat", BaseURL: "http://localhost:11434/v1"})
		}
	})
	if got := kinds(b.dial().say(`{"op":"detect"}`).answer("detect")); got != "found done" {
		t.Error(got)
	}
}
