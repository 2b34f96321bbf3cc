package admit

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
)

// question is what the stages look at: the call, by which way it came, and the
// facts about the agent and the tool. No stage changes it.
type question struct {
	agent    Agent
	tool     Tool
	outer    Call        // as it came
	call     Call        // what would run
	via      libctx.Tool // Shell if outer was routed
	routeErr error       // outer named the shell and its words do not fit
	builtin  bool        // the words are a builtin of the shell: no tool runs
	standing bool        // there is no call: the tool itself is judged
}

// class is the effect class of the call, "" if it names no tool.
func (q *question) class() control.Effect {
	switch {
	case q.routeErr != nil:
		return ""
	case q.builtin:
		return control.Pure
	case q.standing:
		return classOf(q.tool)
	}
	return effectOf(q.tool, q.call)
}

// finding is what a stage says. The zero value refuses: a stage lets a call
// pass by saying so.
type finding struct {
	ok     bool
	none   bool   // the stage has nothing to do with this call
	ask    bool   // the stage leaves the call to a person
	reason string // of a refusal; of a pass, a remark
	want   string
	refuse Code // the code of the refusal if it is not the stage's own
}

func (f finding) refused() bool { return !f.ok && !f.none && !f.ask }

// verdict gives a finding the words of its stage.
func (f finding) verdict(s stage) Verdict {
	v := Verdict{Stage: s.name, OK: f.ok || f.none, Ask: f.ask, Reason: f.reason, Want: f.want}
	if v.OK {
		return v
	}
	if v.Code = f.refuse; v.Code == "" {
		v.Code = s.code
	}
	if v.Reason == "" {
		v.Reason = string(v.Code)
	}
	return v
}

func refuse(want, reason string, args ...any) finding {
	return finding{reason: fmt.Sprintf(reason, args...), want: want}
}

// leave leaves the call to a person; want is what would make it unnecessary.
func leave(want, reason string, args ...any) finding {
	return finding{ask: true, refuse: ApprovalMissing, reason: fmt.Sprintf(reason, args...), want: want}
}

var (
	pass    = finding{ok: true}
	nothing = finding{none: true}
)

func unjudged(why string) finding { return finding{ok: true, reason: "not judged: " + why} }

// stage is one row of the pipeline. ofCall marks the stages that judge the
// call's words rather than the tool's place in the agent's view; ofFile the
// ones that need a found file.
type stage struct {
	name   string
	code   Code
	ofCall bool
	ofFile bool
	check  func(*question) finding
}

// stages is the pipeline, in order. The first two are about the shell itself
// and concern calls of it alone; of a builtin, which runs no tool and changes
// nothing but what the shell remembers, they are the only ones.
var stages = []stage{
	{"tsh arguments", InvalidArguments, true, false, shellArguments},
	{"tsh policy", AgentPolicy, true, false, shellPolicy},
	{"schema", InvalidArguments, true, true, schema},
	{"declared", NotDeclared, true, false, declared},
	{"path", NotFound, false, false, found},
	{"regular file", NotRegular, false, true, regular},
	{"linux mode", LinuxPermission, false, true, linuxMode},
	{"mount", NotMounted, false, true, mounted},
	{"noexec", NoExecMount, false, true, execMount},
	{"perm", Perm, false, true, permBit},
	{"agent policy", AgentPolicy, false, false, agentPolicy},
	{"tool policy", ToolPolicy, false, true, toolPolicy},
	{"effects", EffectUnknown, false, true, effects},
	{"approval", ApprovalMissing, false, false, approval},
}

// judge runs a stage, or says why it has nothing to judge.
func (s stage) judge(q *question) finding {
	switch {
	case (q.routeErr != nil || q.builtin) && !strings.HasPrefix(s.name, "tsh "):
		return nothing
	case s.ofFile && q.tool.Kind == Missing:
		return unjudged("the tool was not found")
	case s.ofFile && q.tool.Kind == Irregular && s.code != NotRegular:
		return unjudged("what has the name is no tool")
	}
	return s.check(q)
}

func shellArguments(q *question) finding {
	switch {
	case q.routeErr != nil:
		return refuse(`{"args":["TOOL","WORD",…]}`, "%s", q.routeErr)
	case q.via == "" && !q.builtin:
		return nothing
	}
	return pass
}

func shellPolicy(q *question) finding {
	if q.via == "" && q.routeErr == nil && !q.builtin {
		return nothing
	}
	return needsRule(q.agent, Shell)
}

// declared: what comes straight from an agent or a model must be the shell or a
// line of the tools control. A call the shell passes on has been answered for
// by the shell's own stages.
func declared(q *question) finding {
	if !q.call.Direct || slices.Contains(q.agent.Declared, q.call.Name) {
		return pass
	}
	return refuse(string(q.call.Name)+" in tools", "tools does not list %s", q.call.Name)
}

func found(q *question) finding {
	if q.tool.Kind != Missing {
		return pass
	}
	return refuse("an executable file "+string(q.call.Name)+" in a directory of path",
		"no directory of path has %s: %s", q.call.Name, strings.Join(q.agent.Path, ":"))
}

func regular(q *question) finding {
	if q.tool.Kind == Regular {
		return pass
	}
	return refuse("a regular file that only root or the owner can write", "%s", q.tool.Obstacle)
}

// MayExecute asks what execve would: the owner's bit for the owner, else the
// group's for a member, else the others'. Uid 0 needs any of the three.
func MayExecute(mode fs.FileMode, uid, gid uint32, id asuser.Identity) bool {
	bit, _ := executeBit(mode, uid, gid, id)
	return bit
}

func executeBit(mode fs.FileMode, uid, gid uint32, id asuser.Identity) (set bool, who string) {
	switch {
	case id.UID == 0:
		return mode&0o111 != 0, "anybody"
	case id.UID == uid:
		return mode&0o100 != 0, "its owner"
	case id.GID == gid || slices.Contains(id.Groups, gid):
		return mode&0o010 != 0, "its group"
	}
	return mode&0o001 != 0, "others"
}

func linuxMode(q *question) finding {
	t, id := q.tool, q.agent.Identity
	set, who := executeBit(t.Mode, t.UID, t.GID, id)
	if set {
		return pass
	}
	return refuse("the execute bit for "+who, "%s has mode %04o: not executable for uid %d, which counts as %s",
		t.Path, uint32(t.Mode.Perm()), id.UID, who)
}

func mounted(q *question) finding {
	if _, ok := q.agent.Mounts.Covering(q.tool.Path); ok {
		return pass
	}
	return refuse("a line of mount that covers "+q.tool.Path, "no line of mount covers %s", q.tool.Path)
}

func execMount(q *question) finding {
	line, ok := q.agent.Mounts.Covering(q.tool.Path)
	if !ok {
		return unjudged("no line of mount covers the tool")
	}
	if !line.NoExec() {
		return pass
	}
	return refuse("a mount of "+line.Target+" without noexec", "the mount on %s is noexec", line.Target)
}

// permBit is the ceiling: the bit the tool's declared class of effect needs.
func permBit(q *question) finding {
	if q.call.Name == Shell || strings.HasPrefix(string(q.call.Name), "agent.") {
		return pass
	}
	need := classOf(q.tool).Perm()
	if q.agent.Perm.Has(need) {
		return pass
	}
	return refuse("perm with "+need.String(), "perm is %s, a tool with effect %s needs %s", q.agent.Perm, classOf(q.tool), need)
}

func agentPolicy(q *question) finding { return needsRule(q.agent, q.call.Name) }

func needsRule(a Agent, name libctx.Tool) finding {
	if a.Policy.Allows(a.Subject, "tool", string(name), "execute") {
		return pass
	}
	return refuse(rule(a.Subject, name)+" in policy", "no line allows %s tool:%s execute", a.Subject, name)
}

func rule(s libctx.Subject, name libctx.Tool) string {
	return fmt.Sprintf("allow %s tool:%s execute", s, name)
}

// toolPolicy: a tool without a policy file leaves the question to the agents'
// policies; with one, even an empty one, it must name the subject itself.
func toolPolicy(q *question) finding {
	t, a := q.tool, q.agent
	want := rule(a.Subject, t.Name) + " in " + t.Path + ".d/policy"
	switch {
	case t.PolicyError != "":
		return refuse(want, "%s", t.PolicyError)
	case !t.HasPolicy, t.Policy.Allows(a.Subject, "tool", string(t.Name), "execute"):
		return pass
	}
	return refuse(want, "the policy of %s has no line that allows %s tool:%s execute", t.Path, a.Subject, t.Name)
}
