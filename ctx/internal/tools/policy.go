package tools

import (
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Verdict is one stage of `ctx policy explain --json`.
type Verdict struct {
	Stage  string     `json:"stage"`
	OK     bool       `json:"ok"`
	Ask    bool       `json:"ask"`
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
// call that would be refused is ErrRefused; one that a person would be asked about
// is not.
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

	refused, asked := false, false
	var rows []output.Row
	for _, s := range admit.Explain(v.Facts(), t.Tool, call) {
		if arguments == "" && s.Code == admit.InvalidArguments {
			s = admit.Verdict{Stage: s.Stage, OK: true, Reason: "not judged: no arguments were given"}
		}
		word := "ok"
		switch {
		case s.Ask:
			word, asked = "ask", true
		case !s.OK:
			word, refused = string(s.Code), true
		}
		rows = append(rows, output.Row{
			Cells:  []string{s.Stage, word, s.Reason, s.Want},
			Object: Verdict{s.Stage, s.OK, s.Ask, s.Code, s.Reason, s.Want},
		})
	}
	if h, ok := hooked(from, v, t.Path); ok {
		word := "ok"
		if !h.OK {
			word, refused = string(h.Code), true
		}
		rows = append(rows, output.Row{Cells: []string{h.Stage, word, h.Reason, h.Want}, Object: h})
	}
	if err := from.Table([]string{"STAGE", "VERDICT", "REASON", "WANTS"}, rows); err != nil {
		return err
	}
	switch {
	case refused:
		return ErrRefused
	case asked:
		from.Note("a person would be asked before it runs: ctx agent chat asks, ctx agent send --approve " + string(inner) + " answers; " +
			string(admit.ApprovalMissing) + " if nobody can be")
	}
	return nil
}

// hooked is what can be said of the hooks before a call, which run when it is made;
// ok is false if there are none.
func hooked(from *caller.Caller, v *view.Agent, tool string) (verdict Verdict, ok bool) {
	hooks, err := v.Hooks(from.Layout, tool, view.Before)
	if err != nil {
		return Verdict{Stage: "hooks", Code: admit.HookDenied, Reason: err.Error(), Want: errdefs.HintOf(err)}, true
	}
	var names []string
	for _, h := range hooks {
		names = append(names, h.Name)
		h.Close()
	}
	return Verdict{
		Stage: "hooks", OK: true, Reason: "each looks at the call and may refuse it (" + string(admit.HookDenied) + ")",
		Want: "exit code 0 of " + strings.Join(names, ", "),
	}, len(names) > 0
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
