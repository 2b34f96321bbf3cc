package render

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Arguments shows the arguments of a call on one line: the words of the
// command-line form, the value where there is one member, else the JSON. The
// result is inert and at most columns wide.
func Arguments(raw jsontext.Value, columns int) string {
	return Clip(Line(arguments(raw)), columns)
}

func arguments(raw jsontext.Value) string {
	var members map[string]jsontext.Value
	if json.Unmarshal(raw, &members) != nil || len(members) != 1 {
		return string(raw)
	}
	for name, value := range members {
		var words []string
		if name == "args" && json.Unmarshal(value, &words) == nil {
			return strings.Join(words, " ")
		}
		var word string
		if value.Kind() == '"' && json.Unmarshal(value, &word) == nil {
			return word
		}
	}
	return string(raw)
}
