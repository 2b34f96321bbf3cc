package scripted

import "fmt"

// Paired reports what is wrong with the conversation of a request: behind each
// assistant's message stand the results of exactly its calls, in their order,
// results stand nowhere else, and no call is there twice.
func (c Chat) Paired() error {
	seen := map[string]bool{}
	for i := 0; i < len(c.Messages); i++ {
		m := c.Messages[i]
		if m.Role == "tool" {
			return fmt.Errorf("message %d is the result of %q, which stands behind no such call", i, m.ToolCallID)
		}
		for _, call := range m.ToolCalls {
			if call.ID == "" || seen[call.ID] {
				return fmt.Errorf("message %d makes a call %q, which is there twice or has no id", i, call.ID)
			}
			seen[call.ID] = true
			i++
			if i == len(c.Messages) || c.Messages[i].Role != "tool" || c.Messages[i].ToolCallID != call.ID {
				return fmt.Errorf("call %q has no result at message %d", call.ID, i)
			}
		}
	}
	return nil
}
