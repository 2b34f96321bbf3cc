package agents

import (
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/models"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/window"
)

// Driven is what `ctx agent inspect --json` says of a model agent's models. Of
// an executable agent it is empty.
type Driven struct {
	Model    libctx.Model   `json:"model"`    // as the control has it
	Resolved libctx.Model   `json:"resolved"` // PROVIDER/MODEL; "" if it means none
	Window   string         `json:"window"`   // as the control has it
	Tokens   *uint32        `json:"window_tokens"`
	Effort   string         `json:"effort"`
	Fallback []libctx.Model `json:"fallback"`
	Native   []libctx.Tool  `json:"native"`  // declared to the model beside tsh
	Refused  []Refused      `json:"refused"` // of the models, those that may not be asked
}

// Refused is a model that an agent may not ask.
type Refused struct {
	Model libctx.Model `json:"model"`
	Error string       `json:"error"`
}

func drivenBy(from *caller.Caller, v *view.Agent) (Driven, error) {
	d := Driven{Fallback: []libctx.Model{}, Native: []libctx.Tool{}, Refused: []Refused{}}
	if v.Executable {
		return d, nil
	}
	d.Model, d.Window, d.Effort = v.Model, v.Window.String(), v.Effort
	if id, err := models.Resolve(from.Layout, v.Owner.UID, v.Model); err == nil {
		d.Resolved = id
	}
	for i, name := range preamble.Chain(from.Layout, v) {
		c, err := preamble.Check(from.Layout, v, name)
		if err != nil {
			d.Refused = append(d.Refused, Refused{name, err.Error()})
		}
		if i > 0 {
			d.Fallback = append(d.Fallback, name)
		} else if c.Window.Known() {
			d.Tokens = new(uint32(c.Window))
		}
	}
	_, native, err := preamble.Native(from.Layout, v)
	d.Native = append(d.Native, native...)
	return d, err
}

func (d *Driven) pairs() []string {
	if d.Model == "" {
		return []string{"model", ""}
	}
	tokens := "unknown"
	if d.Tokens != nil {
		tokens = strconv.FormatUint(uint64(*d.Tokens), 10)
	}
	pairs := []string{
		"model", string(d.Model), "resolved", string(d.Resolved), "window", d.Window, "window_tokens", tokens,
		"effort", d.Effort, "fallback", strings.Join(names(d.Fallback), " "), "native", strings.Join(names(d.Native), " "),
	}
	for _, r := range d.Refused {
		pairs = append(pairs, "refused", string(r.Model)+": "+r.Error)
	}
	return pairs
}

// chosen is the first model that a run would ask, and the window it has; those
// that it would pass over come to refused. The zero Candidate says that there is
// none.
func chosen(from *caller.Caller, v *view.Agent, refused func(libctx.Model, error)) preamble.Candidate {
	for _, name := range preamble.Chain(from.Layout, v) {
		c, err := preamble.Check(from.Layout, v, name)
		if err == nil {
			return c
		}
		refused(name, err)
	}
	return preamble.Candidate{}
}

// windowOf is the window that the tools of an agent are told.
func windowOf(from *caller.Caller, v *view.Agent) window.Size {
	if v.Executable {
		return 0
	}
	return chosen(from, v, func(libctx.Model, error) {}).Window
}
