package tools

import (
	"errors"
	"fmt"
	"slices"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/preamble"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Verdict is one stage of `ctx policy explain --json`.
type Verdict struct {
	Stage  string     `json:"stage"`
	OK     bool       `json:"ok"`
	Code   admit.Code `json:"code"`
	Reason string     `json:"reason"`
	Want   string     `json:"want"`
}

// ErrRefused is the error of an explanation whose answer is no; the stages have
// said why.
var ErrRefused error = errdefs.New(errdefs.Denied, "the call would be refused")

// Explain prints what every stage of admission says of a call by an agent. A
// tool of the tools control is taken as called directly, any other as called
// through tsh. Without arguments the stages that judge them are passed over. A
// call that would be refused is ErrRefused.
func Explain(from *caller.Caller, agent, tool, arguments string) error {
	a, err := libctx.ParseAgent(agent)
	if err != nil {
		return err
	}
	name, err := libctx.ParseTool(tool)
	if err != nil {
		return err
	}
	v, err := view.Load(from.Layout, a)
	if err != nil {
		return err
	}
	call, err := callOf(v, name, arguments)
	if err != nil {
		return err
	}
	if !call.Direct || call.Name != name {
		from.Note("tools does not list " + tool + ": judged as called through tsh")
	}
	inner := name
	if routed, _, err := admit.Route(call); err == nil {
		inner = routed.Name
	}
	t, err := v.Lookup(from.Layout, inner)
	if err != nil {
		return err
	}
	defer t.Close()

	refused := false
	var rows []output.Row
	for _, s := range admit.Explain(v.Facts(), t.Tool, call) {
		if arguments == "" && s.Code == admit.InvalidArguments {
			s = admit.Verdict{Stage: s.Stage, OK: true, Reason: "not judged: no arguments were given"}
		}
		word := "ok"
		if !s.OK {
			word, refused = string(s.Code), true
		}
		rows = append(rows, output.Row{
			Cells:  []string{s.Stage, word, s.Reason, s.Want},
			Object: Verdict{s.Stage, s.OK, s.Code, s.Reason, s.Want},
		})
	}
	if err := from.Table([]string{"STAGE", "VERDICT", "REASON", "WANTS"}, rows); err != nil {
		return err
	}
	if refused {
		return ErrRefused
	}
	return nil
}

// callOf is the call to judge. Tools that can not be called directly are called
// through tsh, which has words for arguments; an object of other members is
// judged as if tsh had passed it on.
func callOf(v *view.Agent, name libctx.Tool, arguments string) (admit.Call, error) {
	call := admit.Call{Name: name, Direct: true, Arguments: jsontext.Value(arguments)}
	var object map[string]jsontext.Value
	if arguments == "" {
		call.Arguments = jsontext.Value("{}")
	} else if err := wire.Object([]byte(arguments), &object); err != nil {
		return call, errdefs.New(errdefs.Invalid, "arguments: %w", err)
	}
	if name == admit.Shell || slices.Contains(v.Declared, name) {
		return call, nil
	}
	var words []string
	if args, ok := object["args"]; ok && (len(object) != 1 || json.Unmarshal(args, &words) != nil) || !ok && arguments != "" {
		call.Direct = false
		return call, nil
	}
	routed, err := wire.Marshal(struct {
		Args []string `json:"args"`
	}{append([]string{string(name)}, words...)})
	return admit.Call{Name: admit.Shell, Direct: true, Arguments: jsontext.Value(routed)}, err
}

// Check tests every control file of an agent and reports each error, not only
// the first one that refuses the agent.
func Check(from *caller.Caller, agent string) error {
	a, err := libctx.ParseAgent(agent)
	if err != nil {
		return err
	}
	bad := 0
	report := func(err error) {
		bad++
		from.Warn(err.Error())
	}
	list, err := tree.Controls(from.Layout, a)
	if errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	if err != nil {
		report(err)
	}
	for _, c := range list {
		if err := control.CheckAgent(c.Name, c.Text); err != nil {
			report(fmt.Errorf("agent/%s.d/%w", a, err))
		}
	}
	v, err := view.Load(from.Layout, a)
	switch {
	case err == nil:
		for _, r := range v.Policy.Rules {
			if r.Subject != v.Subject {
				report(fmt.Errorf("agent/%s.d/policy: %q: allows %s something, but this agent is %s", a, r, r.Subject, v.Subject))
			}
		}
		if !v.Executable {
			if _, err := preamble.Check(from.Layout, v, v.Model); err != nil {
				report(fmt.Errorf("agent/%s.d/model: %w", a, err))
			}
		}
	case bad == 0 || !isGrammar(err): // the grammar was reported above
		report(err)
	}
	if bad > 0 {
		return errdefs.New(errdefs.Invalid, "agent %s: %d of its controls are wrong", a, bad)
	}
	from.Note("agent " + agent + ": every control is right")
	return nil
}

// isGrammar reports whether err is about the text of a control file.
func isGrammar(err error) bool {
	var e *control.Error
	return errors.As(err, &e)
}
