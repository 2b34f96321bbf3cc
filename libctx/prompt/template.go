// Package prompt makes what a model agent sends: the system message, of a
// template and the blocks that go into it, and the message array, of that
// message and as much of the conversation as fits. Runs and `ctx agent prompt`
// use the same renderer. docs/reference/prompt.md describes it. It is pure.
package prompt

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Blocks are what the variables of a template stand for. An empty one shows as
// "(empty)".
type Blocks struct {
	Agent   libctx.Agent  // {{agent}}
	Time    time.Time     // {{current_time_unix}}
	System  string        // {{agent_instructions}}: the control system.md
	Rules   string        // {{rules}}: rules.Rules.Text
	Skills  string        // {{skills}}: skill.Text
	Tools   string        // {{tool_injection}}: loaded and pinned tools
	History string        // {{history_messages}}
	Native  []libctx.Tool // direct-native tools beside tsh, for {{runtime_contract}}
}

// What stands for the blocks that only a run has.
const (
	NoTools    = "(The loaded and pinned tools of a session; known while an agent runs.)"
	NoHistory  = "(The earlier messages of a session; known while an agent runs.)"
	InMessages = "(The earlier messages of this session follow as messages of their own.)"
)

const empty = "(empty)"

// DefaultTemplate is used where an agent has no prompt.template.md, or a blank
// one. What changes most comes last, so that providers can reuse what they made
// of the rest.
//
//go:embed default.md
var DefaultTemplate string

// Render makes the system message. template is the control prompt.template.md.
// Every {{name}} of a known name is replaced once, other ones stay as they are,
// and inserted text is not looked at again. The runtime contract is always
// there: at the end, if the template does not name it. A message over
// libctx.MaxSystemPrompt is errdefs.TooMuch.
func Render(template string, b Blocks) (string, error) {
	if strings.TrimSpace(template) == "" {
		template = DefaultTemplate
	}
	var out strings.Builder
	add := func(s string) bool {
		if out.Len()+len(s) > libctx.MaxSystemPrompt {
			return false
		}
		out.WriteString(s)
		return true
	}
	values := b.values()
	contract, fits := false, true
	for template != "" && fits {
		text, name, rest := next(template, values)
		template = rest
		fits = add(text)
		if name != "" && fits {
			contract = contract || name == contractName
			fits = add(values[name])
		}
	}
	if !contract && fits {
		fits = add("\n\n# Runtime contract\n\n" + values[contractName] + "\n")
	}
	if !fits {
		return "", errdefs.New(errdefs.TooMuch, "prompt: the system message is over %d bytes", libctx.MaxSystemPrompt).
			WithHint("make the agent's prompt.template.md or system.md shorter")
	}
	return out.String(), nil
}

const contractName = "runtime_contract"

func (b Blocks) values() map[string]string {
	values := map[string]string{
		"agent":              string(b.Agent),
		"current_time_unix":  strconv.FormatInt(b.Time.Unix(), 10),
		"agent_instructions": b.System,
		"rules":              b.Rules,
		"skills":             b.Skills,
		"tool_injection":     b.Tools,
		"history_messages":   b.History,
		contractName:         Contract(b.Native),
	}
	for name, v := range values {
		if v = strings.TrimRight(v, "\n"); strings.TrimSpace(v) == "" {
			v = empty
		}
		values[name] = v
	}
	return values
}

// next cuts a template at its first variable: the text before it, its name, and
// what comes after. Without one the text is all and name is "".
func next(template string, values map[string]string) (text, name, rest string) {
	for at := 0; ; {
		i := strings.Index(template[at:], "{{")
		if i < 0 {
			return template, "", ""
		}
		at += i + 2
		// Braces before it belong to the text: "{{{agent}}" is "{" and a name.
		for strings.HasPrefix(template[at:], "{") {
			at++
		}
		n := strings.IndexByte(template[at:min(len(template), at+maxVariable)], '}')
		if n < 0 || !strings.HasPrefix(template[at+n:], "}}") {
			continue
		}
		if name := template[at : at+n]; values[name] != "" {
			return template[:at-2], name, template[at+n+2:]
		}
	}
}

// maxVariable is more than the bytes of the longest name and its end.
const maxVariable = 32
