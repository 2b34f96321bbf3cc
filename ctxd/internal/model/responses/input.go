package responses

import (
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

// input maps the conversation behind the system message. Reasoning goes back
// only as the provider's own items.
func input(g *modelwire.Generate, names *toolnames.Table) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	for i := range g.Messages {
		m := &g.Messages[i]
		switch m.Role {
		case "user":
			if text := textOf(m.Content); !blank(text) {
				out = append(out, said(text, responses.EasyInputMessageRoleUser, ""))
			}
		case "assistant":
			out = append(out, spoken(g, m, names)...)
		case "tool":
			for _, p := range m.Content {
				o := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(string(p.Call))}
				o.Output.OfString = param.NewOpt(p.Text)
				out = append(out, responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &o})
			}
		}
	}
	return out
}

// said is a message of a role.
func said(text string, role responses.EasyInputMessageRole, phase string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfMessage(text, role)
	item.OfMessage.Phase = responses.EasyInputMessagePhase(phase)
	return item
}

// spoken are the items of an assistant's message, with the provider's own in the
// places where they were. Such items alone are no message: reasoning without
// what follows it is refused.
func spoken(g *modelwire.Generate, m *modelwire.Message, names *toolnames.Table) responses.ResponseInputParam {
	var out responses.ResponseInputParam
	marks := compose.Unpack(g, m)
	for i, p := range compose.Speaking(m) {
		phase := ""
		for _, data := range marks[i] {
			var k struct {
				Type  string `json:"type"`
				Phase string `json:"phase"`
			}
			switch {
			case json.Unmarshal(data, &k, jsontext.AllowDuplicateNames(true)) != nil:
			case k.Type != "":
				out = append(out, param.Override[responses.ResponseInputItemUnionParam](data))
			default:
				phase = k.Phase
			}
		}
		if p.Type == "text" {
			out = append(out, said(p.Text, responses.EasyInputMessageRoleAssistant, phase))
			continue
		}
		out = append(out, call(p, names))
	}
	return out
}

// call maps a call. One that was wrong goes back with an empty object, since
// servers refuse what is no JSON; its result says what was wrong.
func call(p wire.Part, names *toolnames.Table) responses.ResponseInputItemUnionParam {
	arguments := "{}"
	if p.Invalid == "" && len(p.Arguments) > 0 {
		arguments = string(p.Arguments)
	}
	return responses.ResponseInputItemParamOfFunctionCall(arguments, string(p.Call), names.Of(p.Name))
}

// textOf is the text parts of a message, a line apart.
func textOf(parts []wire.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Type == "text" && p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
