package models

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	known "cortexfs.org/libctx/models"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Run does one request: no agent, no session, nothing is kept. Words are
// those of the command line, as caller.Input takes them; where standard input is
// all of it, a JSON object there is a request whose answer is printed as frames,
// as with raw.
func Run(ctx context.Context, from *caller.Caller, name string, words []string, raw bool) error {
	m, err := find(from, name)
	if err != nil {
		return err
	}
	g, isJSON, err := request(from, m.ID, words)
	if err != nil {
		return err
	}
	complete(g, m)
	a, err := Ask(ctx, from, g)
	if err != nil {
		return err
	}
	defer a.Close()
	if raw || isJSON {
		return frames(from, a)
	}
	return newSpeech(from).all(a)
}

// find loads the model that a name means for the caller.
func find(from *caller.Caller, name string) (*known.Model, error) {
	m, err := libctx.ParseModel(name)
	if err != nil {
		return nil, err
	}
	id, err := known.Resolve(from.Layout, uint32(os.Geteuid()), m)
	if err != nil {
		return nil, err
	}
	return known.Load(from.Layout, id)
}

// request is what the words or standard input ask of the model.
func request(from *caller.Caller, id libctx.Model, words []string) (g *modelwire.Generate, isJSON bool, err error) {
	text, alone, err := from.Input(words, libctx.MaxModelFrame)
	if err != nil {
		return nil, false, err
	}
	if !alone || !bytes.HasPrefix(bytes.TrimSpace([]byte(text)), []byte("{")) {
		return &modelwire.Generate{
			Model: id, Messages: []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text(text)}}},
		}, false, nil
	}
	var r struct {
		Op                 string `json:"op"`
		modelwire.Generate `json:",embed"`
	}
	if err := wire.Object([]byte(text), &r, json.RejectUnknownMembers(true)); err != nil {
		return nil, true, errdefs.New(errdefs.Invalid, "request: %w", err)
	}
	switch {
	case r.Op != "" && r.Op != r.Generate.Op():
		return nil, true, errdefs.New(errdefs.Invalid, "request: operation %.80q: only generate is run", r.Op)
	case r.Model != "" && r.Model != id:
		return nil, true, errdefs.New(errdefs.Invalid, "request: names the model %s, not %s", r.Model, id)
	}
	r.Model = id
	return &r.Generate, true, nil
}

// complete fills in what a request leaves out: what the model's files say.
func complete(g *modelwire.Generate, m *known.Model) {
	if g.Version == 0 {
		g.Version = modelwire.Version
	}
	if g.Effort == "" && m.Effort != control.EffortAuto {
		g.Effort = m.Effort
	}
	if g.MaxOutput == 0 {
		g.MaxOutput = m.MaxOutput
	}
	if g.Options == nil {
		g.Options = m.Default
	}
}

// frames prints the answer as it comes, one frame a line.
func frames(from *caller.Caller, a *Answer) error {
	var failed error
	for {
		line, f, err := a.Next()
		if errors.Is(err, io.EOF) {
			return failed
		}
		if err != nil {
			return err
		}
		if e, ok := f.(*modelwire.Error); ok {
			failed = Failed(&e.Failure)
		}
		if err := from.Line(append(line, '\n')); err != nil {
			return err
		}
	}
}

// Failed is a failure as an error of its kind, with a hint where there is
// something to do.
func Failed(f *modelwire.Failure) error {
	err := errdefs.New(f.Code, "%s", f.Message)
	switch f.Class {
	case modelwire.ClassAuth:
		return err.WithHint("ctx provider key NAME sets the key")
	case modelwire.ClassNetwork:
		return err.WithHint("ctx provider ls shows where providers are said to be")
	case modelwire.ClassQuota:
		return err.WithHint("the account with the provider is used up")
	}
	return err
}
