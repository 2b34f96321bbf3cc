package sdk_test

import (
	"fmt"
	"os"
	"strings"

	"cortexfs.org/libctx/sdk"
)

// An agent that lists the workspace and says what it saw. The host starts it
// twice; here the two invocations are written out by hand.
func Example() {
	agent := func(s *sdk.Step) error {
		if s.Number == 0 {
			return s.Call("list-1", "fs.list", map[string]string{"path": "/workspace"})
		}
		return s.Message("I see " + s.Observation.Content)
	}

	first := `{"schema":"cortexfs.agent-invocation/v1","run":"run-1","step":0,"input":"look around",` +
		`"history_messages":"[]","tool_context":"","observation":null}` + "\n"
	second := `{"schema":"cortexfs.agent-invocation/v1","run":"run-1","step":1,"input":"look around",` +
		`"history_messages":"[]","tool_context":"","observation":{"tool_call_id":"list-1","name":"fs.list",` +
		`"status":"ok","content":"README.md","truncated":false}}` + "\n"
	for i, stdin := range []string{first, second} {
		l := sdk.Launch{Run: "run-1", Step: fmt.Sprint(i), Stdin: strings.NewReader(stdin), Stdout: os.Stdout}
		if err := l.Serve(agent); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// {"type":"tool_call","run":"run-1","id":"list-1","name":"fs.list","arguments":{"path":"/workspace"}}
	// {"type":"message","run":"run-1","role":"assistant","content":[{"type":"text","text":"I see README.md"}]}
}
