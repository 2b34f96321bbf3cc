package cli

import (
	"context"

	"cortexfs.org/ctx/internal/agents"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/tools"
)

func toolCommands() *command {
	return &command{
		name: "tool", short: "look at tools",
		sub: []*command{
			{
				name: "ls", args: "[AGENT]", most: 1, short: "list tools: yours, or the ones an agent could call",
				examples: []string{"ctx tool ls", "ctx tool ls counter"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return tools.List(from, in.arg(0))
				},
			},
			{
				name: "which", args: "TOOL", fixed: 1, short: "print the file behind a tool's name",
				examples: []string{"ctx tool which fs.read"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return tools.Which(from, in.arg(0))
				},
			},
			{
				name: "help", args: "TOOL", fixed: 1, short: "print what a tool does and which arguments it takes",
				examples: []string{"ctx tool help fs.read"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return tools.Help(from, in.arg(0))
				},
			},
		},
	}
}

func policyCommands() *command {
	return &command{
		name: "policy", short: "see what an agent may do, and why not",
		sub: []*command{
			{
				name: "explain", args: "AGENT TOOL [JSON]", fixed: 2, most: 3, short: "show every stage that would refuse a call",
				long: "Lists the stages of admission in order, and for each that refuses the line or\n" +
					"bit it wants. With JSON the arguments are judged too. Exits with 1 if the call\n" +
					"would be refused.",
				examples: []string{"ctx policy explain counter shell.exec", `ctx policy explain counter fs.read '{"path":"README.md"}'`},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return tools.Explain(from, in.arg(0), in.arg(1), in.arg(2))
				},
			},
			{
				name: "check", args: "AGENT", fixed: 1, short: "check every control file of an agent",
				long:     "Reports every error with file, line and token, not only the first.",
				examples: []string{"ctx policy check counter"},
				run: func(_ context.Context, from *caller.Caller, in *input) error {
					return tools.Check(from, in.arg(0))
				},
			},
		},
	}
}

func fileCommands() *command {
	return &command{
		name: "file", short: "check single files",
		sub: []*command{{
			name: "check", args: "PATH", fixed: 1, short: "check a control file, a tool's file, or a .tshrc",
			long: "The place of the file decides its grammar: agent/NAME.d/FILE, tool/NAME.d/FILE,\n" +
				"model/PROVIDER/NAME.d/FILE, or .tshrc. Names the grammar, the line and the token that is wrong.",
			examples: []string{"ctx file check ~/.local/share/cortexfs/agent/counter.d/policy"},
			run: func(_ context.Context, from *caller.Caller, in *input) error {
				return agents.CheckFile(from, in.arg(0))
			},
		}},
	}
}
