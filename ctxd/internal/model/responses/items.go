package responses

import (
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/responses"
)

// The types of items that say something.
const (
	itemMessage   = "message"
	itemReasoning = "reasoning"
	itemCall      = "function_call"
)

// served are the types of items that a provider makes and settles itself. They
// are passed over.
var served = map[string]bool{
	"code_interpreter_call": true, "file_search_call": true, "image_generation_call": true,
	"mcp_call": true, "mcp_list_tools": true, "web_search_call": true,
}

// The kinds of texts that an item consists of.
const (
	text    = "text"
	refusal = "refusal"
	summary = "summary"
	thought = "thought"
)

// place is where a text belongs.
type place struct {
	index int64 // of the item
	id    string
	kind  string
	at    int64 // among the texts of its kind in the item
}

// item is one item of the answer.
type item struct {
	index int64 // as the provider counts
	id    string
	kind  string
	over  bool
	texts []*passage
	phase string         // of a message
	own   jsontext.Value // reasoning that the provider wants back, as it came
	// of a call
	callID, function string
	part             *compose.Part // nil until the function is known
	early            strings.Builder
	all              bool // the arguments are all there
}

// passage is one text of an item.
type passage struct {
	kind string
	at   int64
	part *compose.Part
}

// find is the item an event belongs to: of those with its index that of its id,
// else the latest that is not over, since some servers change their ids on the
// way.
func (a *answer) find(index int64, id string) *item {
	var open *item
	for i := len(a.items) - 1; i >= 0; i-- {
		it := a.items[i]
		switch {
		case it.index != index:
		case id != "" && it.id == id:
			return it
		case open == nil && !it.over:
			open = it
		}
	}
	return open
}

// open makes an item.
func (a *answer) open(index int64, id, kind string) *item {
	it := &item{index: index, id: id, kind: kind}
	a.items = append(a.items, it)
	return it
}

// begin takes an item that begins. An item of a kind that nobody asked for, and
// that may wait for an answer from us, ends everything.
func (a *answer) begin(index int64, i *responses.ResponseOutputItemUnion) (*item, error) {
	switch {
	case i.Type == itemMessage, i.Type == itemReasoning, i.Type == itemCall, served[i.Type]:
	default:
		return nil, modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassOther,
			"the answer holds an item that nobody asked for: %.80s", inert.Line(i.Type))
	}
	if it := a.find(index, i.ID); it != nil && it.id == i.ID && i.ID != "" {
		return it, nil
	}
	if len(a.items) >= maxItems {
		return nil, modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "the answer has more than %d items", maxItems)
	}
	it := a.open(index, i.ID, i.Type)
	if it.kind == itemCall {
		it.callID, it.function = i.CallID, i.Name
		if it.function != "" {
			return it, a.name(it)
		}
	}
	return it, nil
}

// done takes an item that is whole. What of it came in pieces stands; the rest
// is new.
func (a *answer) done(index int64, i *responses.ResponseOutputItemUnion) error {
	it := a.find(index, i.ID)
	if it == nil {
		var err error
		if it, err = a.begin(index, i); err != nil {
			return err
		}
	}
	if it.over {
		return nil
	}
	if it.kind != i.Type {
		return wrong("an item of the answer ends as another one than it began")
	}
	it.over = true
	at := func(kind string, n int) place { return place{it.index, it.id, kind, int64(n)} }
	switch it.kind {
	case itemMessage:
		m := i.AsMessage()
		it.phase = string(m.Phase)
		for n, c := range m.Content {
			var err error
			switch c.Type {
			case "output_text":
				err = a.full(it, at(text, n), c.Text)
			case "refusal":
				err = a.full(it, at(refusal, n), c.Refusal)
			}
			if err != nil {
				return err
			}
		}
	case itemReasoning:
		r := i.AsReasoning()
		for n, s := range r.Summary {
			if err := a.full(it, at(summary, n), s.Text); err != nil {
				return err
			}
		}
		for n, c := range r.Content {
			if err := a.full(it, at(thought, n), c.Text); err != nil {
				return err
			}
		}
		return a.keep(it, r)
	case itemCall:
		c := i.AsFunctionCall()
		if it.function != "" && c.Name != "" && c.Name != it.function {
			return wrong("a call of the answer changes its name")
		}
		if it.function == "" {
			it.callID, it.function = c.CallID, c.Name
		}
		arguments := c.Arguments
		if raw := c.JSON.Arguments.Raw(); strings.HasPrefix(raw, "{") {
			arguments = raw // they should be a text; the object itself means the same
		}
		return a.settle(it, arguments)
	}
	return nil
}
