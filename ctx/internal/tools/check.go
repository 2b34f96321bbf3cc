package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/policy"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/view"
)

// Check tests the whole control directory of an agent and reports each error, not
// only the first one that refuses the agent: names that are no controls, every
// file's grammar, of the policy every line, whose lines they are, the hooks, the
// model. Lines that allow what another control or the tool itself rules out are no
// errors; they are told, with what they would need.
func Check(from *caller.Caller, agent string) error {
	a, err := libctx.ParseAgent(agent)
	if err != nil {
		return err
	}
	c := &checker{from: from, dir: "agent/" + agent + ".d"}
	list, err := tree.Controls(from.Layout, a)
	if errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	if err != nil {
		c.report(err)
	}
	c.names(from.Layout.Control(a))
	for _, file := range list {
		c.grammar(file)
	}
	v, err := view.Load(from.Layout, a)
	switch {
	case err == nil:
		c.lines(v, list)
		c.hooks(v, list)
		if !v.Executable {
			if _, err := preamble.Check(from.Layout, v, v.Model); err != nil {
				c.report(fmt.Errorf("%s/model: %w", c.dir, err))
			}
		}
	case c.bad == 0 || !isGrammar(err): // the grammar was reported above
		c.report(err)
	}
	if c.bad > 0 {
		return errdefs.New(errdefs.Invalid, "agent %s: %d of its controls are wrong", a, c.bad)
	}
	from.Note("agent " + agent + ": every control is right")
	return nil
}

// checker tests one agent.
type checker struct {
	from *caller.Caller
	dir  string // as it is named in messages
	bad  int
}

func (c *checker) report(err error) {
	c.bad++
	c.from.Warn(err.Error())
}

// names reports what lies in the directory and is no control: a misspelled file
// says nothing to anybody.
func (c *checker) names(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // reported by who reads the controls
	}
	for _, e := range entries {
		name := e.Name()
		known := slices.Contains(control.AgentFiles(), name) || name == view.HooksDir || strings.HasPrefix(name, ".")
		if !known {
			c.report(fmt.Errorf("%s: %q: is not a control of agents", c.dir, name))
		}
	}
}

// grammar reports what is wrong in a file; of a policy whole lines are read one by
// one, since each may be wrong by itself.
func (c *checker) grammar(file tree.Control) {
	err := control.CheckAgent(file.Name, file.Text)
	if err == nil {
		return
	}
	lines, whole := linefile.Split(file.Text)
	if file.Name != "policy" || whole != nil {
		c.report(fmt.Errorf("%s/%w", c.dir, err))
		return
	}
	for i, line := range lines {
		if strings.Trim(line, " \t") == "" {
			continue
		}
		if _, err := policy.ParseRule(line); err != nil {
			var at *linefile.Error
			if errors.As(err, &at) {
				at.File, at.Line = file.Name, i+1
				err = at
			}
			c.report(fmt.Errorf("%s/%w", c.dir, err))
		}
	}
}

// lines looks at what the lines of policy and tools come to: a rule for somebody
// else is an error; one about a tool of which no call would pass is idle.
func (c *checker) lines(v *view.Agent, list []tree.Control) {
	for _, file := range list {
		lines, _ := linefile.Split(file.Text)
		for i, line := range lines {
			at := fmt.Sprintf("%s/%s: line %d", c.dir, file.Name, i+1)
			var name libctx.Tool
			switch file.Name {
			case "tools":
				name = libctx.Tool(line)
			case "policy":
				rule, err := policy.ParseRule(line)
				if err != nil {
					continue // blank
				}
				if rule.Subject != v.Subject {
					c.report(fmt.Errorf("%s: %q: allows %s something, but this agent is %s", at, rule, rule.Subject, v.Subject))
					continue
				}
				if rule.Class != "tool" {
					continue
				}
				name = libctx.Tool(rule.Name)
			default:
				continue
			}
			if why := c.idle(v, name); why != "" {
				c.from.Note(fmt.Sprintf("%s: %q is idle: %s", at, line, why))
			}
		}
	}
}

// idle says why no call of a tool would pass, "" if some would.
func (c *checker) idle(v *view.Agent, name libctx.Tool) string {
	if name == admit.Shell {
		return ""
	}
	t, err := v.Lookup(c.from.Layout, name)
	if err != nil {
		return err.Error()
	}
	defer t.Close()
	s := admit.Standing(v.Facts(), t.Tool)
	if s.OK {
		return ""
	}
	return fmt.Sprintf("%s (%s); it wants %s", s.Reason, s.Code, s.Want)
}

// hooks looks at the hooks of the agent and of the tools that its policy and its
// tools control name: one that can not be believed refuses every call. What lies
// beside the two directories is never run.
func (c *checker) hooks(v *view.Agent, list []tree.Control) {
	wrong := v.HookErrors(c.from.Layout, "")
	for _, name := range named(list) {
		t, err := v.Lookup(c.from.Layout, name)
		if err != nil {
			continue // told with the lines
		}
		t.Close()
		if t.Kind != admit.Regular {
			continue
		}
		wrong = append(wrong, v.HookErrors(c.from.Layout, t.Path)...)
	}
	for _, err := range wrong {
		c.report(err)
	}
	entries, err := os.ReadDir(filepath.Join(c.from.Layout.Control(v.Name), view.HooksDir))
	if err != nil {
		return // there are none, or it was told
	}
	for _, e := range entries {
		if name := e.Name(); name != string(view.Before) && name != string(view.After) && !strings.HasPrefix(name, ".") {
			c.report(fmt.Errorf("%s/%s: %q: hooks are in %s and %s", c.dir, view.HooksDir, name, view.Before, view.After))
		}
	}
}

// named is the tools that lines of policy and tools are about, each once.
func named(list []tree.Control) (names []libctx.Tool) {
	for _, file := range list {
		lines, _ := linefile.Split(file.Text)
		for _, line := range lines {
			name := libctx.Tool(line)
			if file.Name == "policy" {
				rule, err := policy.ParseRule(line)
				if err != nil || rule.Class != "tool" {
					continue
				}
				name = libctx.Tool(rule.Name)
			} else if file.Name != "tools" {
				continue
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// isGrammar reports whether err is about the text of a control file.
func isGrammar(err error) bool {
	var e *control.Error
	return errors.As(err, &e)
}
