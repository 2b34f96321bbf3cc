package tree

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
	"golang.org/x/sys/unix"
)

// changeModels is change for what decides which model an agent has, or how
// large a model's window is: one such change at a time, so that what was
// checked still holds when it is written.
func changeModels(l paths.Layout, fn func(root *atomicfile.Dir) error) error {
	return change(l, func(root *atomicfile.Dir) error {
		dir, err := root.MkdirAll(".lock", privatePerm)
		if err != nil {
			return err
		}
		defer dir.Close()
		f, _, err := dir.OpenAppend("models", 0o600)
		if err != nil {
			return err
		}
		defer f.Close() // and with it the lock
		for {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
			if err != unix.EINTR {
				break
			}
		}
		if err != nil {
			return errdefs.New(errdefs.KindOf(err), "lock of the models: %w", err)
		}
		return fn(root)
	})
}

// modelOf is the model and the window an agent's controls name, as far as they
// can be read; an agent without a model has "".
func modelOf(l paths.Layout, a libctx.Agent) (model libctx.Model, setting control.Window, err error) {
	text, err := GetControl(l, a, "model")
	if err == nil {
		model, err = control.ParseModel(text)
	}
	if err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return "", 0, err
	}
	text, err = GetControl(l, a, "window")
	if errdefs.Is(err, errdefs.NotFound) {
		return model, 0, nil
	}
	if err == nil {
		setting, err = control.ParseWindow(text)
	}
	return model, setting, err
}

// fits refuses a new text of the control model or window that names a model which
// is not there, or would leave the agent with a window its model does not have.
// What the other of the two says counts if it can be read.
func fits(l paths.Layout, a libctx.Agent, file string, text []byte) error {
	owner, err := Owner(l, a)
	if err != nil {
		return err
	}
	model, setting, err := modelOf(l, a)
	if err != nil {
		return nil // a broken agent, of which this may be the first repair
	}
	switch file {
	case "model":
		model, err = control.ParseModel(text)
	case "window":
		setting, err = control.ParseWindow(text)
	}
	if err != nil {
		return err
	}
	if file == "model" {
		id, err := models.Resolve(l, owner, model)
		if err == nil {
			_, err = models.Load(l, id)
		}
		if err != nil {
			return err
		}
	}
	if setting == 0 {
		return nil
	}
	if model == "" {
		return errdefs.New(errdefs.Invalid, "window %s: the agent has no model with a known limit", setting).
			WithHint("set window to auto")
	}
	return models.Check(l, setting, model, owner)
}

// keepsWindows refuses a change of models after which an agent would have an
// explicit window that its model does not have. after tells the limit that the
// model of an agent will have, if the change is about it. Agents that are broken
// already are let be.
func keepsWindows(l paths.Layout, after func(libctx.Agent, models.Ref) (limit window.Size, affected bool)) error {
	agents, err := ListAgents(l)
	if err != nil {
		return err
	}
	for _, a := range agents {
		model, setting, err := modelOf(l, a)
		if err != nil || model == "" || setting == 0 {
			continue
		}
		owner, err := Owner(l, a)
		if err != nil || models.Check(l, setting, model, owner) != nil {
			continue
		}
		ref, err := models.Find(l, owner, model)
		if err != nil {
			continue
		}
		limit, affected := after(a, ref)
		if !affected {
			continue
		}
		if _, err := window.Effective(setting, limit); err != nil {
			return errdefs.New(errdefs.Invalid, "agent %s, whose model is %s: %w", a, model, err).
				WithHint("first: ctx agent set %s window auto", a)
		}
	}
	return nil
}

// ModelUse is an agent that uses a model.
type ModelUse struct {
	Agent libctx.Agent
	Model libctx.Model // the control model, as written
	ID    libctx.Model // provider/model
}

// ModelUses lists the agents that a model drives and whose model can be found,
// in the order of names.
func ModelUses(l paths.Layout) ([]ModelUse, error) {
	agents, err := ListAgents(l)
	if err != nil {
		return nil, err
	}
	var uses []ModelUse
	for _, a := range agents {
		model, _, err := modelOf(l, a)
		if err != nil || model == "" {
			continue
		}
		owner, err := Owner(l, a)
		if err != nil {
			continue
		}
		if id, err := models.Resolve(l, owner, model); err == nil {
			uses = append(uses, ModelUse{a, model, id})
		}
	}
	return uses, nil
}
