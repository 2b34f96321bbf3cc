package compose

import (
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mark is provider data that has a place in a message: before the part number At
// of those that go back (Part.Says), from 0.
type Mark struct {
	At   int            `json:"at"`
	Data jsontext.Value `json:"data"` // as it came
}

// Pack makes opaque data of marks, nil if there are none.
func Pack(g *modelwire.Generate, marks []Mark) *modelwire.Opaque {
	if len(marks) == 0 {
		return nil
	}
	data, err := json.Marshal(marks)
	if err != nil {
		return nil // a provider's data that is no JSON can not go back either
	}
	return &modelwire.Opaque{Provider: modelwire.ProviderOf(g.Model), Model: g.Model, Data: data}
}

// Unpack returns the marks of a message that belong to the model of a request,
// by their places. What is not of Pack's making is nothing.
func Unpack(g *modelwire.Generate, m *modelwire.Message) map[int][]jsontext.Value {
	var marks []Mark
	data := m.Opaque.For(g.Model)
	if data == nil || json.Unmarshal(data, &marks) != nil {
		return nil
	}
	out := map[int][]jsontext.Value{}
	for _, k := range marks {
		out[k.At] = append(out[k.At], k.Data)
	}
	return out
}

// Speaking are the parts of a message that go to a provider, in the order in
// which marks count them.
func Speaking(m *modelwire.Message) []wire.Part {
	var out []wire.Part
	for _, p := range m.Content {
		if p.Type == "tool_call" || p.Type == "text" && !blank(p.Text) {
			out = append(out, p)
		}
	}
	return out
}
