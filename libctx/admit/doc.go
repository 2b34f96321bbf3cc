// Package admit decides whether one tool call may run: a table of small pure
// stages over an explicit view of the agent, the tool and the call. Each stage
// may refuse and none can grant; a call is allowed when every stage let it
// pass. Nothing here reads a file, a clock or the environment, and no prompt
// text, skill or tool description is an input.
//
// Decide is what the runtime acts on, Explain is the same table told to a
// person. docs/reference/admission.md has the order and the codes.
package admit
