package responses

import (
	"bytes"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/responses"
)

// maxItems are the items of one answer: as many as a message has parts.
const maxItems = libctx.MaxModelParts

// piece adds to a text. An item that nobody announced begins with it.
func (a *answer) piece(p place, more string) error {
	if more == "" {
		return nil
	}
	it, err := a.holder(p)
	if err != nil {
		return err
	}
	s, err := a.textOf(it, p)
	if err != nil {
		return err
	}
	return s.Add(more)
}

// whole takes a text that is at its end.
func (a *answer) whole(p place, all string) error {
	if all == "" {
		return nil
	}
	it, err := a.holder(p)
	if err != nil {
		return err
	}
	return a.full(it, p, all)
}

// full takes a text at once, if none of it came in pieces.
func (a *answer) full(it *item, p place, all string) error {
	if all == "" {
		return nil
	}
	s, err := a.textOf(it, p)
	if err != nil || s.Len() > 0 {
		return err
	}
	return s.Add(all)
}

// holder is the item of a text.
func (a *answer) holder(p place) (*item, error) {
	kind := itemMessage
	if p.kind == summary || p.kind == thought {
		kind = itemReasoning
	}
	it := a.find(p.index, p.id)
	switch {
	case it == nil && len(a.items) >= maxItems, it != nil && (it.over || it.kind != kind):
		return nil, wrong("a piece of the answer belongs to no open item")
	case it == nil:
		it = a.open(p.index, p.id, kind)
	}
	return it, nil
}

// textOf is the part of the message that a text becomes.
func (a *answer) textOf(it *item, p place) (*compose.Part, error) {
	for _, s := range it.texts {
		if s.kind == p.kind && s.at == p.at {
			return s.part, nil
		}
	}
	s := &passage{kind: p.kind, at: p.at}
	var err error
	switch p.kind {
	case summary, thought:
		s.part, err = a.Reasoning()
	default:
		a.refusal = a.refusal || p.kind == refusal
		s.part, err = a.Text()
		a.parts = append(a.parts, s.part)
	}
	if err != nil {
		return nil, err
	}
	it.texts = append(it.texts, s)
	return s.part, nil
}

// arguments takes a piece of a call's arguments, or all of them.
func (a *answer) arguments(index int64, id, more string, all bool) error {
	it := a.find(index, id)
	switch {
	case it == nil && len(a.items) >= maxItems, it != nil && (it.kind != itemCall || it.over || it.all && !all):
		return wrong("a piece of the answer belongs to no open call")
	case it == nil:
		it = a.open(index, id, itemCall)
	}
	if all {
		return a.settle(it, more)
	}
	if it.part != nil {
		return it.part.Add(more)
	}
	if it.early.Len()+len(more) > libctx.MaxModelArguments {
		return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "the arguments of a call are longer than %d bytes", libctx.MaxModelArguments)
	}
	it.early.WriteString(more)
	return nil
}

// name begins the call once its function is known, or never will be.
func (a *answer) name(it *item) error {
	if it.part != nil {
		return nil
	}
	var err error
	if it.part, err = a.Call(it.callID, it.function); err != nil {
		return err
	}
	a.parts = append(a.parts, it.part)
	return it.part.Add(it.early.String())
}

// settle ends the arguments of a call. Where they came in pieces, these are held
// to what they are said to be at the end: nobody runs a call that is in doubt.
func (a *answer) settle(it *item, all string) error {
	it.all = true
	if it.function != "" {
		if err := a.name(it); err != nil {
			return err
		}
	}
	before := it.early.String()
	if it.part != nil {
		before = it.part.String()
	}
	switch {
	case all == "":
		return nil
	case before != "":
		if !same(before, all) {
			return wrong("the arguments of a call are not what their pieces were")
		}
		return nil
	case it.part != nil:
		return it.part.Add(all)
	}
	it.early.WriteString(all)
	return nil
}

// same reports whether two texts are the same, spaces in JSON aside.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, y := jsontext.Value(a), jsontext.Value(b)
	return x.Compact() == nil && y.Compact() == nil && bytes.Equal(x, y)
}

// keep keeps reasoning that the provider can read again. Without its encrypted
// form it is nothing to a provider that keeps nothing.
func (a *answer) keep(it *item, r responses.ResponseReasoningItem) error {
	own := jsontext.Value(r.RawJSON())
	if r.EncryptedContent == "" || !own.IsValid() || deep(own) {
		return nil
	}
	it.own = own.Clone()
	return a.Grow(len(own))
}

// deep reports whether a value is nested deeper than opaque data may be, its
// wrapping included.
func deep(v jsontext.Value) bool {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		if _, err := d.ReadToken(); err != nil {
			return false
		}
		if d.StackDepth() > libctx.MaxModelDepth-wrapping {
			return true
		}
	}
}

// wrapping is how deep compose.Pack puts a mark.
const wrapping = 2

// marks are what the provider wants to see again, and where: its reasoning
// before the part that followed it, the phase of a message beside its texts.
func (a *answer) marks() []compose.Mark {
	place, n := map[*compose.Part]int{}, 0
	for _, p := range a.parts {
		if p.Says() {
			place[p] = n
			n++
		}
	}
	var out []compose.Mark
	for i, it := range a.items {
		if it.own != nil {
			if at, ok := first(a.items[i+1:], place); ok {
				out = append(out, compose.Mark{At: at, Data: it.own})
			}
		}
		if it.phase == "" {
			continue
		}
		data, err := json.Marshal(struct {
			Phase string `json:"phase"`
		}{it.phase})
		for _, s := range it.texts {
			if at, ok := place[s.part]; ok && err == nil {
				out = append(out, compose.Mark{At: at, Data: data})
			}
		}
	}
	return out
}

// first is the place of the first part that one of the items says.
func first(items []*item, place map[*compose.Part]int) (int, bool) {
	for _, it := range items {
		if at, ok := place[it.part]; ok && it.part != nil {
			return at, true
		}
		for _, s := range it.texts {
			if at, ok := place[s.part]; ok {
				return at, true
			}
		}
	}
	return 0, false
}
