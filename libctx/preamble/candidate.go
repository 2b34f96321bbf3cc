package preamble

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// Candidate is a model that an agent may ask.
type Candidate struct {
	Model  *models.Model
	Window window.Size // the agent's, with this model
}

// Chain is the models of an agent in the order in which they are tried: its own,
// then those that this model names as its fallback. One that can not be looked at
// names none.
func Chain(l paths.Layout, a *view.Agent) []libctx.Model {
	names := []libctx.Model{a.Model}
	id, err := models.Resolve(l, a.Owner.UID, a.Model)
	if err != nil {
		return names
	}
	if m, err := models.Load(l, id); err == nil {
		names = append(names, m.Fallback...)
	}
	return names
}

// Check finds out whether the agent may ask the model of that name, and with
// which window. Errors: errdefs.Denied if no policy line allows it,
// errdefs.Invalid if the window control does not go with it, and those of
// models.Find and models.Load.
func Check(l paths.Layout, a *view.Agent, name libctx.Model) (Candidate, error) {
	ref, err := models.Find(l, a.Owner.UID, name)
	if err != nil {
		return Candidate{}, err
	}
	if v := admit.UseModel(a.Facts(), ref.Name, ref.ID, ref.Own); !v.OK {
		return Candidate{}, errdefs.New(errdefs.Denied, "agent %s may not use model %s: %s", a.Name, name, v.Reason).
			WithHint("%s", v.Want)
	}
	m, err := models.Load(l, ref.ID)
	if err != nil {
		return Candidate{}, err
	}
	size, err := window.Effective(a.Window, m.Limit)
	if err != nil {
		return Candidate{}, errdefs.New(errdefs.KindOf(err), "model %s: %w", m.ID, err)
	}
	return Candidate{m, size}, nil
}
