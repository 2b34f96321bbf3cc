// Package sdk is for authors of executable agents in Go. An agent is a program
// that the host starts once for every step of a run: it finds one invocation on
// its standard input, writes frames on its standard output, may end by calling
// one tool, and exits. The host runs the tool and starts the program again with
// the result.
//
//	func main() { os.Exit(sdk.Main(agent)) }
//
//	func agent(s *sdk.Step) error {
//		if s.Number == 0 {
//			return s.Call("list-1", "fs.list", map[string]any{"path": "/workspace"})
//		}
//		return s.Message(s.Observation.Content)
//	}
//
// docs/agents.md is the guide; example/linecount is a complete agent to copy.
package sdk
