package anthropic

import (
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	user      = anthropic.MessageParamRoleUser
	assistant = anthropic.MessageParamRoleAssistant
)

// beginning stands where the user's first words no longer are: a conversation
// begins with the user.
const beginning = "(What came before is left out.)"

// messages maps the conversation behind the system message. Results of calls are
// the user's, and messages of one side in a row are one. Reasoning goes back
// only as the provider's own data.
func messages(g *modelwire.Generate, names *toolnames.Table) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	add := func(role anthropic.MessageParamRole, blocks []anthropic.ContentBlockParamUnion) {
		switch last := len(out) - 1; {
		case len(blocks) == 0:
		case last >= 0 && out[last].Role == role:
			out[last].Content = append(out[last].Content, blocks...)
		case last < 0 && role == assistant:
			out = append(out, anthropic.NewUserMessage(anthropic.NewTextBlock(beginning)), anthropic.NewAssistantMessage(blocks...))
		default:
			out = append(out, anthropic.MessageParam{Role: role, Content: blocks})
		}
	}
	for i := range g.Messages {
		m := &g.Messages[i]
		switch m.Role {
		case "user":
			var blocks []anthropic.ContentBlockParamUnion
			if text := textOf(m.Content); strings.TrimSpace(text) != "" {
				blocks = append(blocks, anthropic.NewTextBlock(text))
			}
			add(user, blocks)
		case "assistant":
			add(assistant, spoken(g, m, names))
		case "tool":
			var blocks []anthropic.ContentBlockParamUnion
			for _, p := range m.Content {
				blocks = append(blocks, result(p))
			}
			add(user, blocks)
		}
	}
	return out
}

// spoken are the blocks of an assistant's message, with the provider's data in
// the places where it was. Data alone is no message.
func spoken(g *modelwire.Generate, m *modelwire.Message, names *toolnames.Table) []anthropic.ContentBlockParamUnion {
	var out []anthropic.ContentBlockParamUnion
	marks := compose.Unpack(g, m)
	for i, p := range compose.Speaking(m) {
		for _, data := range marks[i] {
			out = append(out, thought(data))
		}
		if p.Type == "text" {
			out = append(out, anthropic.NewTextBlock(p.Text))
			continue
		}
		out = append(out, call(p, names))
	}
	return out
}

// thought is a block of thinking, as it came.
func thought(data jsontext.Value) anthropic.ContentBlockParamUnion {
	return param.Override[anthropic.ContentBlockParamUnion](data)
}

// call maps a call. One that was wrong goes back with an empty object; its
// result says what was wrong.
func call(p wire.Part, names *toolnames.Table) anthropic.ContentBlockParamUnion {
	input := jsontext.Value("{}")
	if p.Invalid == "" && len(p.Arguments) > 0 {
		input = p.Arguments
	}
	return anthropic.NewToolUseBlock(callID(p.Call), input, names.Of(p.Name))
}

func result(p wire.Part) anthropic.ContentBlockParamUnion {
	r := anthropic.ToolResultBlockParam{ToolUseID: callID(p.Call)}
	if p.Status == "error" {
		r.IsError = anthropic.Bool(true)
	}
	if strings.TrimSpace(p.Text) != "" {
		r.Content = []anthropic.ToolResultBlockParamContentUnion{{OfText: &anthropic.TextBlockParam{Text: p.Text}}}
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: &r}
}

// callID is an id in the letters Anthropic allows. Ours hold no others, but a
// client's may.
func callID(c libctx.Call) string { return ids.Replace(string(c)) }

var ids = strings.NewReplacer(".", "_p", "+", "_a", "_", "__")

// hint marks what the next request of the session will begin with: the system
// message, or the tools where there is none, and the last two messages of the
// user's side, since a cache is looked for only a few blocks back.
func hint(c *anthropic.MessageNewParams) {
	mark := anthropic.NewCacheControlEphemeralParam()
	switch {
	case len(c.System) > 0:
		c.System[len(c.System)-1].CacheControl = mark
	case len(c.Tools) > 0:
		c.Tools[len(c.Tools)-1].OfTool.CacheControl = mark
	}
	left := 2
	for i := len(c.Messages) - 1; i >= 0 && left > 0; i-- {
		if c.Messages[i].Role != user {
			continue
		}
		left--
		blocks := c.Messages[i].Content
		if to := blocks[len(blocks)-1].GetCacheControl(); to != nil {
			*to = mark
		}
	}
}
