// Package prompt makes what a model agent sends: the system message, of a
// template and the blocks that go into it, and the message array, of that
// message and as much of the conversation as fits. Runs and `ctx agent prompt`
// use the same renderer. docs/reference/prompt.md describes it. It is pure.
package prompt

import (
	"time"

	"cortexfs.org/libctx"
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

// Render makes the system message. template is the control prompt.template.md,
// or nothing for the default one. Every {{name}} of a known name is replaced
// once, other ones stay as they are, and inserted text is not looked at again.
// The runtime contract is always there: at the end, if the template does not
// name it. A message over libctx.MaxSystemPrompt is errdefs.TooMuch.
func Render(template string, b Blocks) (string, error) { return "", nil }

// Contract is the immutable runtime contract. native are the declared tools that
// the model may call beside tsh.
func Contract(native []libctx.Tool) string { return "" }
