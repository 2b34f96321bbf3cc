package admit

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/paths"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// classOf is the class a tool declares.
func classOf(t Tool) control.Effect {
	if t.Effect == "" {
		return control.Unknown
	}
	return t.Effect
}

// effectOf is the class of one call: the declared one, raised from the
// workspace to the host when a path among the arguments leads out of
// /workspace. What the session's own long outputs are kept in, and the file of a
// skill, may be read like the workspace. It is read from the arguments as they came; of a built-in tool
// in the place of those it is known which word is the path, of every other tool
// each word may be one.
func effectOf(t Tool, c Call) control.Effect {
	class := classOf(t)
	up, ok := map[control.Effect]control.Effect{control.WorkspaceRead: control.HostRead, control.WorkspaceMutation: control.HostMutation}[class]
	if !ok {
		return class
	}
	object, err := objectOf(t, c.Arguments)
	var args struct {
		Path string   `json:"path"`
		Args []string `json:"args"`
	}
	if err != nil || json.Unmarshal(object, &args) != nil {
		// Another form than ours; the schema decides whether it is one at all.
		return up
	}
	for _, p := range append(args.Args, args.Path) {
		if leaves(p, c.Cwd) && !(class == control.WorkspaceRead && (ofSession(p, c.Session) || ofSkill(p))) {
			return up
		}
	}
	return class
}

// objectOf is the arguments with the command-line form of a built-in tool as the
// object that the tool makes of it.
func objectOf(t Tool, args jsontext.Value) (jsontext.Value, error) {
	f, ok := form.Of(t.Name)
	words, isArgs, err := commandLine(args)
	if !ok || t.Path != builtins+string(t.Name) || err != nil || !isArgs {
		return args, err
	}
	return f.Object(words)
}

// builtins is where the built-in tools are, as seen inside.
const builtins = paths.InRoot + "/tool/"

// leaves reports whether an inside path leads out of the workspace, as it is
// spelled: tools follow no links. A relative one starts in cwd, and so does one
// that is left out. Tools take a path in double quotes for the one inside.
func leaves(p, cwd string) bool {
	if strings.HasPrefix(p, `"`) {
		inner, err := strconv.Unquote(p)
		if err != nil {
			return true
		}
		p = inner
	}
	if !path.IsAbs(p) {
		if cwd == "" {
			cwd = paths.InWorkspace
		}
		p = path.Join(cwd, p)
	}
	return !paths.Below(path.Clean(p), paths.InWorkspace)
}

// ofSession reports whether an inside path is one of the outputs kept for the
// session.
func ofSession(p string, session libctx.Session) bool {
	return session != "" && path.IsAbs(p) && paths.Below(path.Clean(p), paths.InSpill+"/"+string(session))
}

// ofSkill reports whether an inside path is the SKILL.md of a skill of the
// machine or of the agent.
func ofSkill(p string) bool {
	if !path.IsAbs(p) || path.Base(p) != "SKILL.md" {
		return false
	}
	p = path.Clean(p)
	return paths.Below(p, paths.InSkills) || slices.ContainsFunc(paths.SkillDirs(), func(dir string) bool {
		return paths.Below(p, path.Join(paths.InHome, dir))
	})
}

// hostCodes says how a controlled policy refuses the classes it has no
// question for.
var hostCodes = map[control.Effect]Code{
	control.HostRead:     HostReadDenied,
	control.HostMutation: HostChangeDenied,
	control.Network:      NetworkDenied,
	control.Delegation:   DelegationDenied,
	control.Extension:    ExtensionDenied,
}

// effects is the policy over classes. An unknown class is refused whatever the
// control says. Under unsafe-host the sandbox is what contains, and every known
// class passes. The controlled policies let observation of the workspace pass,
// leave changes to it and commands of the shells to a person, and refuse the rest;
// controlled lets commands pass that are known to only look.
func effects(q *question) finding {
	class := q.class()
	if class == control.Unknown || class == "" {
		f := refuse("a known class in "+q.tool.Path+".d/effect", "the effect of %s is unknown", q.tool.Name)
		if q.tool.EffectError != "" {
			f.reason += ": " + q.tool.EffectError
		}
		return f
	}
	switch q.agent.Effects {
	case control.EffectsUnsafeHost:
		return pass
	case control.EffectsControlled, control.EffectsControlledBashApproval:
	default:
		return refuse("effects "+control.EffectsUnsafeHost, "effects has no meaning: %s", q.agent.Effects)
	}
	const want = "effects " + control.EffectsUnsafeHost
	why := "effects is " + q.agent.Effects + ", the call is " + string(class)
	switch code, denied := hostCodes[class]; {
	case class == control.Pure, class == control.WorkspaceRead:
		return pass
	case denied:
		return finding{refuse: code, reason: why, want: want}
	case class == control.WorkspaceMutation:
		return leave(want, "%s", why)
	case q.tool.Name != bash && q.tool.Name != shellExec:
		return finding{refuse: ProcessDenied, reason: why, want: want}
	case q.agent.Effects == control.EffectsControlled && knownSafe(q.tool, q.call):
		return pass
	}
	return leave(want, "%s", why)
}

// approval leaves every call to a person if the agent's control says so.
func approval(q *question) finding {
	switch q.agent.Approval {
	case control.ApprovalAuto:
		return pass
	case control.ApprovalAsk:
		return leave("approval "+control.ApprovalAuto, "approval is %s", control.ApprovalAsk)
	}
	return refuse("approval "+control.ApprovalAuto, "approval has no meaning: %s", q.agent.Approval)
}
