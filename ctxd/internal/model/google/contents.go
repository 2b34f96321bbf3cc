package google

import (
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/toolnames"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"
)

// beginning stands where the user's first words no longer are: a conversation
// begins with the user.
const beginning = "(What came before is left out.)"

// unsigned is the signature that Google gives for calls that another model made.
const unsigned = `"skip_thought_signature_validator"`

// talk writes the conversation behind the system message.
type talk struct {
	request  *modelwire.Generate
	names    *toolnames.Table
	signed   bool // the model wants a signature with its calls
	contents []*genai.Content
	patches  []patch
}

// patch is what a part is to hold exactly, which the SDK's types can not.
type patch struct {
	content, part int
	args          jsontext.Value // of a call
	signature     jsontext.Value
	text          bool // an empty text, which the SDK leaves out
}

// write writes all messages. Results of calls are the user's; messages of one
// side in a row are one, but results stand apart from the user's words.
func (t *talk) write() {
	called := map[libctx.Call]libctx.Tool{}
	results := false
	for i := range t.request.Messages {
		m := &t.request.Messages[i]
		switch m.Role {
		case "user":
			if text := textOf(m.Content); strings.TrimSpace(text) != "" {
				t.turn(genai.RoleUser, results)
				t.add(&genai.Part{Text: text}, patch{})
				results = false
			}
		case "assistant":
			for _, p := range m.Content {
				if p.Type == "tool_call" {
					called[p.Call] = p.Name
				}
			}
			if t.spoken(m) {
				results = false
			}
		case "tool":
			for _, p := range m.Content {
				t.turn(genai.RoleUser, !results)
				t.add(genai.NewPartFromFunctionResponse(t.names.Of(called[p.Call]), outcome(p)), patch{})
				t.last().FunctionResponse.ID = string(p.Call)
				results = true
			}
		}
	}
}

// turn makes the last content one of a side.
func (t *talk) turn(role string, anew bool) {
	if n := len(t.contents); n > 0 && t.contents[n-1].Role == role && !(anew && role == genai.RoleUser) {
		return
	}
	if len(t.contents) == 0 && role == genai.RoleModel {
		t.contents = append(t.contents, genai.NewContentFromText(beginning, genai.RoleUser))
	}
	t.contents = append(t.contents, &genai.Content{Role: role})
}

func (t *talk) add(p *genai.Part, exact patch) {
	c := t.contents[len(t.contents)-1]
	exact.content, exact.part = len(t.contents)-1, len(c.Parts)
	c.Parts = append(c.Parts, p)
	if exact.args != nil || exact.signature != nil || exact.text {
		t.patches = append(t.patches, exact)
	}
}

func (t *talk) last() *genai.Part {
	c := t.contents[len(t.contents)-1]
	return c.Parts[len(c.Parts)-1]
}

// spoken writes an assistant's message, with the signatures where they were, and
// reports whether there was anything. Signatures alone are no message.
func (t *talk) spoken(m *modelwire.Message) bool {
	speaking := compose.Speaking(m)
	if len(speaking) == 0 {
		return false
	}
	t.turn(genai.RoleModel, false)
	marks := compose.Unpack(t.request, m)
	first := true
	for i, p := range speaking {
		var exact patch
		for _, data := range marks[i] {
			if data.Kind() == '"' {
				exact.signature = data
			} else {
				t.alone(data)
			}
		}
		if p.Type == "text" {
			t.add(&genai.Part{Text: p.Text}, exact)
			continue
		}
		if exact.signature == nil && first && t.signed {
			exact.signature = jsontext.Value(unsigned)
		}
		first = false
		// One that was wrong goes back with an empty object; its result says
		// what was wrong.
		exact.args = jsontext.Value("{}")
		if p.Invalid == "" && len(p.Arguments) > 0 {
			exact.args = p.Arguments
		}
		t.add(&genai.Part{FunctionCall: &genai.FunctionCall{ID: string(p.Call), Name: t.names.Of(p.Name)}}, exact)
	}
	for _, data := range marks[len(speaking)] {
		t.alone(data)
	}
	return true
}

// alone writes a part that only carries a signature.
func (t *talk) alone(data jsontext.Value) {
	var p struct {
		Thought   bool           `json:"thought"`
		Text      string         `json:"text"`
		Signature jsontext.Value `json:"thoughtSignature"`
	}
	if json.Unmarshal(data, &p) == nil && p.Signature.Kind() == '"' {
		t.add(&genai.Part{Thought: p.Thought, Text: p.Text}, patch{signature: p.Signature, text: p.Text == ""})
	}
}

// outcome is the result of a call in the words Google gives it.
func outcome(p wire.Part) map[string]any {
	if p.Status == "error" {
		return map[string]any{"error": p.Text}
	}
	return map[string]any{"output": p.Text}
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

// restore puts into the body what the SDK has no room for.
func (t *talk) restore(body map[string]any) {
	contents := objects(body["contents"])
	for _, p := range t.patches {
		if p.content >= len(contents) {
			continue
		}
		parts := objects(contents[p.content]["parts"])
		if p.part >= len(parts) {
			continue
		}
		part := parts[p.part]
		if part == nil {
			continue
		}
		if call, ok := part["functionCall"].(map[string]any); ok && p.args != nil {
			call["args"] = p.args
		}
		if p.signature != nil {
			part["thoughtSignature"] = p.signature
		}
		if p.text {
			part["text"] = ""
		}
	}
}

// restoreSchemas puts the schemas of the tools into the body byte by byte.
func restoreSchemas(body map[string]any, schemas []jsontext.Value) {
	for _, tool := range objects(body["tools"]) {
		for i, f := range objects(tool["functionDeclarations"]) {
			if f != nil && i < len(schemas) {
				f["parametersJsonSchema"] = schemas[i]
			}
		}
	}
}

// objects are the objects of a list in either form the SDK has for one.
func objects(v any) []map[string]any {
	switch list := v.(type) {
	case []map[string]any:
		return list
	case []any:
		out := make([]map[string]any, len(list))
		for i, v := range list {
			out[i], _ = v.(map[string]any)
		}
		return out
	}
	return nil
}
