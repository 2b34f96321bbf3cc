package models

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/window"
)

// Check refuses a window that an agent of the user uid can not have with the
// model it names: an explicit number needs a model whose maximum is known and not
// smaller. The window auto goes with every model, also with one that is not
// there. The error is errdefs.Invalid and says why.
func Check(l paths.Layout, setting control.Window, name libctx.Model, uid uint32) error {
	if setting == 0 {
		return nil
	}
	var m *Model
	id, err := Resolve(l, uid, name)
	if err == nil {
		m, err = Load(l, id)
	}
	if err != nil {
		return errdefs.New(errdefs.Invalid, "window %s: the limit of the model is not known: %w", setting, err).
			WithHint("set window to auto")
	}
	if _, err = window.Effective(setting, m.Limit); err != nil {
		return about(name, err)
	}
	return nil
}
