package preamble

import (
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"github.com/go-json-experiment/json/jsontext"
)

// words is the schema of a tool that takes the command-line form alone.
const words = `{"type":"object","properties":{"args":{"type":"array","items":{"type":"string"},"maxItems":64}},"required":["args"],"additionalProperties":false}`

// shell declares the tool shell.
func shell() modelwire.Tool {
	return modelwire.Tool{
		Name: admit.Shell,
		Description: "The CortexFS tool shell. The first word of args is a tool or a builtin, the others are its arguments. " +
			"Builtins: tools lists the tools there are, help TOOL explains one, load TOOL and pin TOOL keep its description at hand.",
		Parameters: jsontext.Value(words),
	}
}

// Native is the tools that a request declares: the tool shell and the tools of
// the agent's tools control, by name. One that no call could be admitted to, or
// whose schema is none, is left out. The same files give the same list, byte for
// byte, so that providers find what they keep of earlier requests. Declared is
// the names without the shell's.
func Native(l paths.Layout, a *view.Agent) (tools []modelwire.Tool, declared []libctx.Tool, err error) {
	tools = append(tools, shell())
	for _, name := range a.Declared {
		if name == admit.Shell || slices.Contains(declared, name) || len(tools) == libctx.MaxModelTools {
			continue
		}
		t, err := a.Lookup(l, name)
		if err != nil {
			return nil, nil, err
		}
		t.Close()
		if tool, ok := declare(a, t); ok {
			tools, declared = append(tools, tool), append(declared, name)
		}
	}
	slices.SortFunc(tools, func(a, b modelwire.Tool) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	slices.Sort(declared)
	return tools, declared, nil
}

// declare is what a model is told of one tool.
func declare(a *view.Agent, t *view.Tool) (modelwire.Tool, bool) {
	d := modelwire.Tool{Name: t.Name, Description: t.Description, Parameters: jsontext.Value(words)}
	if !admit.Standing(a.Facts(), t.Tool).OK || len(d.Description) > libctx.MaxModelDescription {
		return d, false
	}
	if t.CLIOnly || t.Schema == nil {
		return d, true
	}
	s, err := control.ParseSchema(t.Schema)
	if err != nil {
		return d, false
	}
	d.Parameters = s.Text().Clone()
	return d, d.Parameters.Kind() == '{' && d.Parameters.Compact() == nil
}
