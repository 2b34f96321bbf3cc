package tools

import (
	"fmt"
	"io"
	"strings"

	"cortexfs.org/libctx/inert"

	"github.com/go-json-experiment/json/jsontext"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell"
)

// find looks a tool up on the caller's path.
func find(from *caller.Caller, name string) (libctx.Tool, toolshell.Hit, error) {
	t, err := libctx.ParseTool(name)
	if err != nil {
		return "", toolshell.Hit{}, err
	}
	dirs, err := searchPath(from)
	if err != nil {
		return "", toolshell.Hit{}, err
	}
	hit, found, err := toolshell.Lookup(dirs, t)
	if err != nil {
		return "", toolshell.Hit{}, err
	}
	if !found {
		err := errdefs.New(errdefs.NotFound, "no tool %q in %s", t, strings.Join(dirs, ":"))
		if miss, there := hit.Reason(); there {
			err = errdefs.New(errdefs.NotFound, "no tool %q: %s %s", t, miss.Path, miss.Why)
		}
		return "", toolshell.Hit{}, err.WithHint("ctx tool ls lists them")
	}
	return t, hit, nil
}

// Which prints the file behind a tool's name.
func Which(from *caller.Caller, name string) error {
	t, hit, err := find(from, name)
	if err != nil {
		return err
	}
	if from.JSON {
		return from.Object(describe(t, hit))
	}
	return from.Text(inert.Line(hit.Path) + "\n")
}

// Help prints what a tool's files say of it.
func Help(from *caller.Caller, name string) error {
	t, hit, err := find(from, name)
	if err != nil {
		return err
	}
	e := describe(t, hit)
	var schema jsontext.Value
	if text, err := hit.Read("schema"); err == nil {
		if s, err := control.ParseSchema([]byte(text)); err == nil {
			schema = s.Text()
		}
	}
	if from.JSON {
		return from.Object(struct {
			Entry
			Schema jsontext.Value `json:"schema,omitzero"`
		}{e, schema})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", inert.Line(string(t)))
	if e.Description != "" {
		fmt.Fprintf(&b, "  %s\n", inert.Line(e.Description))
	}
	fmt.Fprintf(&b, "\nfile     %s\neffect   %s (perm %s)\n", inert.Line(hit.Path), e.Effect, e.Effect.Perm())
	for _, file := range []string{"mode", "replay", "parallel", "cap"} {
		if text, err := hit.Read(file); err == nil && text != "" {
			fmt.Fprintf(&b, "%-8s %s\n", file, inert.Line(strings.ReplaceAll(strings.TrimSpace(text), "\n", " ")))
		}
	}
	if schema != nil {
		if err := schema.Indent(jsontext.WithIndent("  ")); err == nil {
			fmt.Fprintf(&b, "\narguments\n%s\n", inert.Text(string(schema)))
		}
	}
	// The examples of a built-in tool are about the tool of that name only as long
	// as the tree describes it so.
	if examples := about.Examples(t); examples != "" && e.Description == about.Description(t) {
		fmt.Fprintf(&b, "\nexamples, behind ctx agent tsh AGENT --\n  %s\n", strings.ReplaceAll(examples, "\n", "\n  "))
	}
	_, err = io.WriteString(from, b.String())
	return err
}
