package render

import (
	"strings"

	"cortexfs.org/libctx/inert"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Arguments shows the arguments of a call on one line: the words of the
// command-line form, the text where one member is a text, else the JSON. The
// result is inert and at most columns wide.
func Arguments(raw jsontext.Value, columns int) string {
	return Clip(inert.Line(arguments(raw)), columns)
}

func arguments(raw jsontext.Value) string {
	var members map[string]jsontext.Value
	if json.Unmarshal(raw, &members) != nil {
		return string(raw)
	}
	if len(members) == 0 {
		return ""
	}
	var words []string
	if args, ok := members["args"]; ok && len(members) == 1 && json.Unmarshal(args, &words) == nil {
		return strings.Join(words, " ")
	}
	var texts []string
	for _, value := range members {
		var text string
		if value.Kind() == '"' && json.Unmarshal(value, &text) == nil {
			texts = append(texts, text)
		}
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return string(raw)
}
