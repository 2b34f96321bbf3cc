package model

import (
	"context"
	"errors"
	"time"

	"cortexfs.org/ctxd/internal/model/hide"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
)

// Service answers requests. Its files are read anew for each.
type Service struct {
	Layout   paths.Layout
	Registry Registry
}

// Out takes the lines of an answer, LF included, with the frames they are of. An
// error says that nobody reads them any more.
type Out func(f modelwire.Frame, line []byte) error

// Answer does a request and writes all of its answer, done included. It returns
// an error only if the answer could not be written to its end: that of out, or
// ErrDrop.
func (s *Service) Answer(ctx context.Context, r modelwire.Request, out Out) error {
	a := &answer{ctx: ctx, out: out, stream: modelwire.Stream{Op: r.Op()}}
	var err error
	switch r := r.(type) {
	case *modelwire.Generate:
		err = s.generate(ctx, r, a)
	case *modelwire.Probe:
		err = s.probe(ctx, r, a)
	case *modelwire.Detect:
		if s.Registry.Detect != nil {
			err = s.Registry.Detect(ctx, func(f *modelwire.Found) error { return a.Send(f) })
		}
	}
	return a.end(err)
}

func (s *Service) generate(ctx context.Context, g *modelwire.Generate, out Sink) error {
	driver, p, err := s.find(modelwire.ProviderOf(g.Model))
	if err != nil {
		return err
	}
	if _, ok := p.Model(modelwire.NameOf(g.Model)); !ok {
		return modelwire.Fail(errdefs.NotFound, modelwire.PhasePreSend, modelwire.ClassInvalid,
			"provider %s has no model %s", p.Name, modelwire.NameOf(g.Model))
	}
	var key provider.Secret
	if p.Key == provider.KeyRequired {
		if key, err = provider.Key(s.Layout, p.Name, p.Slot()); err != nil {
			return refusal(err, modelwire.ClassAuth)
		}
	}
	filter := hide.New(key)
	if filter == nil {
		return driver.Generate(ctx, p, key, g, out)
	}
	guarded := newGuard(out, filter)
	err = driver.Generate(ctx, p, key, g, guarded)
	if rest := guarded.flush(); err == nil {
		err = rest
	}
	return redact(err, filter)
}

// find returns a provider and the driver of its format.
func (s *Service) find(name string) (Driver, *provider.Provider, error) {
	if name == provider.Debug {
		return s.Registry.Debug, debugProvider, nil
	}
	p, err := provider.Load(s.Layout, name)
	if err != nil {
		return nil, nil, refusal(err, modelwire.ClassInvalid)
	}
	driver, ok := s.Registry.Formats[p.Format]
	if !ok {
		return nil, nil, modelwire.Fail(errdefs.Unsupported, modelwire.PhasePreSend, modelwire.ClassInvalid,
			"provider %s: format %s is not offered", name, p.Format)
	}
	return driver, p, nil
}

// debugProvider stands for the file that the built-in provider does not have.
var debugProvider = &provider.Provider{
	Name: provider.Debug, Format: provider.Debug, Key: provider.KeyNone,
	Models: []provider.Model{{ID: "echo"}, {ID: "script"}, {ID: "tools"}},
}

// probe does one tiny request whose answer nobody sees.
func (s *Service) probe(ctx context.Context, r *modelwire.Probe, out *answer) error {
	began := time.Now()
	verdict := &modelwire.Verdict{Model: r.Model}
	fail := func(err error) error {
		if out.over(err) {
			return err
		}
		verdict.Failure = failure(err)
		verdict.DurationMS = time.Since(began).Milliseconds()
		return out.Send(verdict)
	}
	if r.Model == "" {
		_, p, err := s.find(r.Provider)
		if err != nil {
			return fail(err)
		}
		if len(p.Models) == 0 {
			return fail(modelwire.Fail(errdefs.NotFound, modelwire.PhasePreSend, modelwire.ClassInvalid, "provider %s has no model", r.Provider))
		}
		verdict.Model = libctx.Model(r.Provider + "/" + p.Models[0].Entry())
	}
	// What comes is held to the same order, and dropped.
	hidden := &answer{ctx: ctx, out: func(modelwire.Frame, []byte) error { return nil }}
	err := s.generate(ctx, &modelwire.Generate{
		Version: modelwire.Version, Model: verdict.Model, MaxOutput: probeOutput,
		Messages: []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text("Say ok.")}}},
	}, hidden)
	if err == nil {
		err = hidden.complete()
	}
	if err != nil {
		return fail(err)
	}
	verdict.OK = true
	verdict.DurationMS = time.Since(began).Milliseconds()
	return out.Send(verdict)
}

// probeOutput is how many tokens the answer of a probe may have: enough for
// models that refuse fewer.
const probeOutput = 16

// refusal is the failure of a request that reached nobody.
func refusal(err error, class string) *modelwire.Failure {
	text := err.Error()
	if hint := errdefs.HintOf(err); hint != "" {
		text += "; " + hint
	}
	return modelwire.Fail(errdefs.KindOf(err), modelwire.PhasePreSend, class, "%s", text)
}

// redact takes the key out of the words of an error: providers like to quote
// what was wrong.
func redact(err error, filter *hide.Filter) error {
	if err == nil {
		return nil
	}
	var f *modelwire.Failure
	switch {
	case errors.As(err, &f):
		clean := *f
		words := modelwire.Fail(f.Code, f.Phase, f.Class, "%s", filter.Text(f.Message)).WithCode(filter.Text(f.ProviderCode))
		clean.Message, clean.ProviderCode = words.Message, words.ProviderCode
		return &clean
	case len(filter.Find(err.Error())) > 0:
		return errdefs.New(errdefs.KindOf(err), "%s", filter.Text(err.Error()))
	}
	return err
}
