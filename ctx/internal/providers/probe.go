package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/models"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
)

// Tested is what `ctx provider test --json` prints.
type Tested struct {
	Provider   string       `json:"provider"`
	OK         bool         `json:"ok"`
	Model      libctx.Model `json:"model"` // that was asked, "" if none was
	DurationMS int64        `json:"duration_ms"`
	Class      string       `json:"class"` // of the failure, "" if there was none
	Error      string       `json:"error"`
}

// Test makes one tiny request to a provider and says how it went. A provider
// that does not work is an error of the failure's kind.
func Test(ctx context.Context, from *caller.Caller, name, model string) error {
	r := &modelwire.Probe{Provider: name}
	if name != provider.Debug {
		if _, err := provider.Load(from.Layout, name); err != nil {
			return err
		}
	}
	if model != "" {
		if !strings.Contains(model, "/") {
			model = name + "/" + model
		}
		m, err := libctx.ParseModel(model)
		if err != nil {
			return err
		}
		r.Model = m
	}
	var v *modelwire.Verdict
	if err := each(ctx, from, r, func(f modelwire.Frame) {
		if got, ok := f.(*modelwire.Verdict); ok {
			v = got
		}
	}); err != nil {
		return err
	}
	if v == nil {
		return errdefs.New(errdefs.Protocol, "ctxmodel gave no verdict")
	}
	t := Tested{Provider: name, OK: v.OK, Model: v.Model, DurationMS: v.DurationMS}
	verdict := fmt.Sprintf("ok in %d ms", v.DurationMS)
	if !v.OK {
		t.Class, t.Error = v.Failure.Class, v.Failure.Message
		verdict = "failed: " + t.Class
	}
	if err := from.Record(t, "provider", name, "model", string(t.Model), "verdict", verdict); err != nil {
		return err
	}
	if !v.OK {
		return verdictOf(v.Failure)
	}
	return nil
}

// verdictOf is a failure with what there is to do about it: what answers at a
// wrong place is seldom what was looked for.
func verdictOf(f *modelwire.Failure) error {
	if f.Class == modelwire.ClassAuth && f.Code != errdefs.Denied { // no key is there
		denied := *f
		denied.Code = errdefs.Denied
		f = &denied
	}
	err := models.Failed(f)
	elsewhere := f.Phase == modelwire.PhaseHeaders && f.Status != 0 || f.Status >= 300 && f.Status <= 399
	switch {
	case errdefs.HintOf(err) != "":
		return err
	case elsewhere:
		return errdefs.New(f.Code, "%w", err).WithHint("is its base URL right, and its format? ctx provider ls shows them")
	case f.Status == 404 || f.Status == 405:
		return errdefs.New(f.Code, "%w", err).WithHint("is that the provider's own name for the model, and the base URL right? ctx provider ls shows it")
	}
	return err
}

// Detect lists the known servers of models that answer on this machine.
func Detect(ctx context.Context, from *caller.Caller) error {
	var rows []output.Row
	if err := each(ctx, from, &modelwire.Detect{}, func(f modelwire.Frame) {
		found, ok := f.(*modelwire.Found)
		if !ok {
			return
		}
		rows = append(rows, output.Row{Object: found, Cells: []string{
			found.Name, found.Format, found.BaseURL, strings.Join(found.Models, " "),
		}})
	}); err != nil {
		return err
	}
	if len(rows) == 0 && !from.JSON {
		from.Note("no known server of models answers on this machine")
		return nil
	}
	return from.Table([]string{"SERVER", "FORMAT", "BASE URL", "MODELS"}, rows)
}

// each asks and gives every frame of the answer to fn. An error frame is the
// error.
func each(ctx context.Context, from *caller.Caller, r modelwire.Request, fn func(modelwire.Frame)) error {
	a, err := models.Ask(ctx, from, r)
	if err != nil {
		return err
	}
	defer a.Close()
	var failed error
	for {
		_, f, err := a.Next()
		switch {
		case errors.Is(err, io.EOF):
			return failed
		case err != nil:
			return err
		}
		if e, ok := f.(*modelwire.Error); ok {
			failed = models.Failed(&e.Failure)
			continue
		}
		fn(f)
	}
}
