package engine

import (
	"errors"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// candidate is a model that may be asked.
type candidate struct {
	model *models.Model
	size  window.Size // the agent's window with this model
}

// chain is the models of an agent in the order in which they are tried: its own,
// then those that this model names as its fallback. One that can not be looked at
// names none.
func chain(l paths.Layout, a *view.Agent) []libctx.Model {
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

// check finds out whether the agent may ask the model of that name, and with
// which window. Errors: errdefs.Denied if no policy line allows it,
// errdefs.Invalid if the window control does not go with it, and those of
// models.Load.
func check(l paths.Layout, a *view.Agent, name libctx.Model) (candidate, error) {
	ref, err := models.Find(l, a.Owner.UID, name)
	if err != nil {
		return candidate{}, err
	}
	if v := admit.UseModel(a.Facts(), ref.Name, ref.ID, ref.Own); !v.OK {
		return candidate{}, errdefs.New(errdefs.Denied, "agent %s may not use model %s: %s", a.Name, name, v.Reason).
			WithHint("%s", v.Want)
	}
	m, err := models.Load(l, ref.ID)
	if err != nil {
		return candidate{}, err
	}
	size, err := window.Effective(a.Window, m.Limit)
	if err != nil {
		return candidate{}, errdefs.New(errdefs.KindOf(err), "model %s: %w", m.ID, err)
	}
	return candidate{m, size}, nil
}

// startAt is where in the chain a request begins: at the model that answered
// before in this run, so that one which is out of order is not asked at every
// turn, or at the front.
func startAt(names []libctx.Model, answered libctx.Model) int {
	return max(0, slices.Index(names, answered))
}

// passOn reports whether the next model is asked after one failed like this:
// only while no answer has begun, and not where the reason lies with us or with
// what was asked.
func passOn(err error) bool {
	var f *modelwire.Failure
	if !errors.As(err, &f) || f.GenerationSeen || f.Code == errdefs.Cancelled {
		return false
	}
	return f.Class != modelwire.ClassPolicy
}
