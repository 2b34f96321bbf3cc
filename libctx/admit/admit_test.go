package admit

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/policy"
)

// rules is a policy for tests.
func rules(t testing.TB, lines ...string) policy.Policy {
	t.Helper()
	var p policy.Policy
	for _, l := range lines {
		r, err := policy.ParseRule(l)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// coder is an agent that may read, through the shell or directly.
func coder(t testing.TB) Agent {
	perm, err := control.ParsePerm("r--")
	if err != nil {
		t.Fatal(err)
	}
	return Agent{
		Name: "coder", Subject: "coder_t",
		Identity: asuser.Identity{UID: 1000, GID: 1000, Groups: []uint32{1000, 27}},
		Declared: []libctx.Tool{"fs.read"},
		Path:     []string{"/ctx/tool", "/ctx/home/1000/tool"},
		Mounts:   mount.Default(1000, "coder"),
		Perm:     perm,
		Policy:   rules(t, "allow coder_t tool:tsh execute", "allow coder_t tool:fs.read execute"),
		Effects:  "unsafe-host", Approval: "auto",
	}
}

const readSchema = `{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}` + "\n"

func fsRead() Tool {
	return Tool{
		Name: "fs.read", Kind: Regular, Path: "/ctx/tool/fs.read", Mode: 0o755,
		Schema: []byte(readSchema), Effect: "workspace_read",
	}
}

func read(args string) Call {
	return Call{Name: "fs.read", Arguments: jsontext.Value(args), Direct: true}
}

func tsh(args string) Call { return Call{Name: Shell, Arguments: jsontext.Value(args), Direct: true} }

func TestAllowed(t *testing.T) {
	for _, c := range []Call{
		read(`{"path":"README.md"}`),
		read(`{"path":"README.md","lines":3}`),
		read(`{"args":["README.md"]}`),
		read(`{"args":[]}`),
		tsh(`{"args":["fs.read","README.md"]}`),
		tsh(` {"args" : ["fs.read"]} `),
	} {
		got := Decide(coder(t), fsRead(), c)
		want := Decision{Allowed: true, Name: "fs.read", Effect: "workspace_read", Authorization: ByPolicy}
		if c.Name == Shell {
			want.Via = Shell
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s: %s", c.Name, c.Arguments, diff)
		}
		for _, v := range Explain(coder(t), fsRead(), c) {
			if !v.OK {
				t.Errorf("%s %s: %+v", c.Name, c.Arguments, v)
			}
		}
	}
}

// TestStages has each stage refuse an otherwise perfect call.
func TestStages(t *testing.T) {
	exec := func(options ...string) mount.Table {
		return mount.Table{{Source: "/ctx", Target: "/ctx", ReadOnly: true, Options: options}}
	}
	good := `{"path":"README.md"}`
	type edit func(*Agent, *Tool, *Call)
	args := func(s string) edit { return func(_ *Agent, _ *Tool, c *Call) { c.Arguments = jsontext.Value(s) } }
	agent := func(f func(*Agent)) edit { return func(a *Agent, _ *Tool, _ *Call) { f(a) } }
	tool := func(f func(*Tool)) edit { return func(_ *Agent, t *Tool, _ *Call) { f(t) } }
	shell := func(s string) edit { return func(_ *Agent, _ *Tool, c *Call) { *c = tsh(s) } }
	both := func(fs ...edit) edit {
		return func(a *Agent, t *Tool, c *Call) {
			for _, f := range fs {
				f(a, t, c)
			}
		}
	}
	words := func(n int) string {
		return `{"args":[` + strings.TrimSuffix(strings.Repeat(`"x",`, n), ",") + `]}`
	}

	for _, tt := range []struct {
		name   string
		edit   edit
		stage  string
		code   Code
		reason string // part of it
	}{
		{"member missing", args(`{}`), "schema", InvalidArguments, "path"},
		{"unknown member", args(`{"path":"a","mode":"w"}`), "schema", InvalidArguments, "mode"},
		{"other case", args(`{"Path":"a"}`), "schema", InvalidArguments, ""},
		{"wrong type", args(`{"path":3}`), "schema", InvalidArguments, "/path"},
		{"below minimum", args(`{"path":"a","lines":0}`), "schema", InvalidArguments, "/lines"},
		{"fraction", args(`{"path":"a","lines":1.5}`), "schema", InvalidArguments, "/lines"},
		{"huge number", args(`{"path":"a","lines":1e999999999}`), "schema", InvalidArguments, "too long"},
		{"tiny number", args(`{"path":"a","lines":1e-999999999}`), "schema", InvalidArguments, "too long"},
		{"long number", args(`{"path":"a","lines":` + strings.Repeat("9", 1000) + `}`), "schema", InvalidArguments, "too long"},
		{"not an object", args(`["a"]`), "schema", InvalidArguments, "not a JSON object"},
		{"null", args(`null`), "schema", InvalidArguments, "not a JSON object"},
		{"nothing", args(``), "schema", InvalidArguments, "not a JSON object"},
		{"cut", args(`{"path":"a"`), "schema", InvalidArguments, "invalid JSON"},
		{"two values", args(`{"path":"a"}{}`), "schema", InvalidArguments, ""},
		{"duplicate member", args(`{"path":"a","path":"b"}`), "schema", InvalidArguments, "invalid JSON"},
		{"invalid UTF-8", args("{\"path\":\"\xff\"}"), "schema", InvalidArguments, "invalid JSON"},
		{"deep", args(`{"path":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`), "schema", InvalidArguments, "depth"},
		{"args and more", args(`{"args":["a"],"path":3}`), "schema", InvalidArguments, ""},
		{"args of numbers", args(`{"args":[1]}`), "schema", InvalidArguments, "strings"},
		{"too many words", args(words(libctx.MaxArgs + 1)), "schema", InvalidArguments, "limit"},
		{"word too long", args(`{"args":["` + strings.Repeat("x", libctx.MaxArg+1) + `"]}`), "schema", InvalidArguments, "limit"},
		{"NUL in a word", args(`{"args":["\u0000"]}`), "schema", InvalidArguments, "NUL"},
		{"cli tool", tool(func(t *Tool) { t.CLIOnly = true }), "schema", InvalidArguments, "mode cli"},
		{"too long", args(`{"path":"` + strings.Repeat("a", libctx.MaxCallArguments) + `"}`), "schema", InvalidArguments, "limit"},
		{"no schema", tool(func(t *Tool) { t.Schema = nil }), "schema", InvalidArguments, "no schema"},
		{"no readable schema", tool(func(t *Tool) { t.Schema, t.SchemaError = nil, "/ctx/tool/fs.read.d/schema: permission denied" }), "schema", InvalidArguments, "permission denied"},
		{"words, no readable schema", both(args(`{"args":["a"]}`), tool(func(t *Tool) { t.Schema, t.SchemaError = nil, "permission denied" })), "schema", InvalidArguments, "permission denied"},
		{"words, broken schema", both(args(`{"args":["a"]}`), tool(func(t *Tool) { t.Schema = []byte("{") })), "schema", InvalidArguments, "/ctx/tool/fs.read.d/schema: "},
		{"schema is no JSON", tool(func(t *Tool) { t.Schema = []byte("not JSON\n") }), "schema", InvalidArguments, "schema: "},
		{"schema is no schema", tool(func(t *Tool) { t.Schema = []byte(`{"type":3}` + "\n") }), "schema", InvalidArguments, "not a JSON Schema"},
		{"schema of a file", tool(func(t *Tool) { t.Schema = []byte(`{"$ref":"file:///etc/passwd"}` + "\n") }), "schema", InvalidArguments, "another document"},
		{"schema of the net", tool(func(t *Tool) { t.Schema = []byte(`{"$ref":"http://127.0.0.1/s"}` + "\n") }), "schema", InvalidArguments, "another document"},
		{"schema of a file's draft", tool(func(t *Tool) { t.Schema = []byte(`{"$schema":"file:///etc/passwd"}` + "\n") }), "schema", InvalidArguments, "another document"},
		{"schema in a circle", tool(func(t *Tool) { t.Schema = []byte(`{"$ref":"#"}` + "\n") }), "schema", InvalidArguments, "cycle"},
		{"schema false", tool(func(t *Tool) { t.Schema = []byte(`false` + "\n") }), "schema", InvalidArguments, ""},
		{"schema with a huge number", tool(func(t *Tool) { t.Schema = []byte(`{"minimum":1e999999999}` + "\n") }), "schema", InvalidArguments, "too long"},

		{"not declared", agent(func(a *Agent) { a.Declared = nil }), "declared", NotDeclared, "tools does not list fs.read"},
		{"missing", tool(func(t *Tool) { *t = Tool{Name: "fs.read"} }), "path", NotFound, "no directory of path has fs.read: /ctx/tool:/ctx/home/1000/tool"},
		{"facts of another tool", tool(func(t *Tool) { t.Name = "fs.list" }), "path", NotFound, "fs.read"},
		{"a link", tool(func(t *Tool) { t.Kind, t.Obstacle = Irregular, "/ctx/tool/fs.read: is a link" }), "regular file", NotRegular, "is a link"},
		{"no bit at all", tool(func(t *Tool) { t.Mode = 0o644 }), "linux mode", LinuxPermission, "0644"},
		{"no bit for the owner", tool(func(t *Tool) { t.Mode, t.UID = 0o655, 1000 }), "linux mode", LinuxPermission, "its owner"},
		{"no bit for the group", tool(func(t *Tool) { t.Mode, t.GID = 0o745, 27 }), "linux mode", LinuxPermission, "its group"},
		{"no bit for others", tool(func(t *Tool) { t.Mode = 0o754 }), "linux mode", LinuxPermission, "others"},
		{"no bit for root", both(agent(func(a *Agent) { a.Identity = asuser.Identity{} }), tool(func(t *Tool) { t.Mode = 0o666 })), "linux mode", LinuxPermission, "anybody"},
		{"not mounted", agent(func(a *Agent) { a.Mounts = a.Mounts[1:] }), "mount", NotMounted, "covers /ctx/tool/fs.read"},
		{"noexec", agent(func(a *Agent) { a.Mounts = exec("noexec") }), "noexec", NoExecMount, "the mount on /ctx is noexec"},
		{"noexec below", agent(func(a *Agent) {
			a.Mounts = append(exec(), mount.Line{Source: "/ctx/tool", Target: "/ctx/tool", ReadOnly: true, Options: []string{"noexec"}})
		}), "noexec", NoExecMount, "/ctx/tool is"},
		{"perm", agent(func(a *Agent) { a.Perm = 0 }), "perm", Perm, "needs r--"},
		{"perm of a process", tool(func(t *Tool) { t.Effect = "host_process" }), "perm", Perm, "needs --x"},
		{"perm of a change", tool(func(t *Tool) { t.Effect = "workspace_mutation" }), "perm", Perm, "needs -w-"},
		{"agent policy", agent(func(a *Agent) { a.Policy = rules(t, "allow coder_t tool:tsh execute") }), "agent policy", AgentPolicy, "no line allows coder_t tool:fs.read execute"},
		{"policy of another subject", agent(func(a *Agent) { a.Policy = rules(t, "allow other_t tool:fs.read execute") }), "agent policy", AgentPolicy, "coder_t"},
		{"empty tool policy", tool(func(t *Tool) { t.HasPolicy = true }), "tool policy", ToolPolicy, "no line that allows coder_t"},
		{"tool policy of another", tool(func(tl *Tool) { tl.HasPolicy, tl.Policy = true, rules(t, "allow other_t tool:fs.read execute") }), "tool policy", ToolPolicy, "coder_t"},
		{"broken tool policy", tool(func(t *Tool) { t.PolicyError = "policy: line 1: …" }), "tool policy", ToolPolicy, "line 1"},
		{"unknown effect", both(tool(func(t *Tool) { t.Effect = "" }), agent(func(a *Agent) { a.Perm = 7 })), "effects", EffectUnknown, "unknown"},
		{"unknown effect by name", both(tool(func(t *Tool) { t.Effect = "unknown" }), agent(func(a *Agent) { a.Perm = 7 })), "effects", EffectUnknown, "unknown"},
		{"effects of no meaning", agent(func(a *Agent) { a.Effects = "" }), "effects", EffectUnknown, "meaning"},
		{"controlled, host path", both(agent(func(a *Agent) { a.Effects = "controlled" }), args(`{"path":"/etc/passwd"}`)), "effects", HostReadDenied, "host_read"},
		{"controlled, climbing path", both(agent(func(a *Agent) { a.Effects = "controlled" }), args(`{"path":"a/../../x"}`)), "effects", HostReadDenied, "host_read"},
		{"controlled, quoted path", both(agent(func(a *Agent) { a.Effects = "controlled" }), args(`{"path":"\"\\x2fetc/passwd\""}`)), "effects", HostReadDenied, "host_read"},
		{"controlled, quote alone", both(agent(func(a *Agent) { a.Effects = "controlled" }), args(`{"path":"\"/etc"}`)), "effects", HostReadDenied, "host_read"},
		{"controlled, climbing word", both(agent(func(a *Agent) { a.Effects = "controlled" }), shell(`{"args":["fs.read","/workspace/../etc"]}`)), "effects", HostReadDenied, "host_read"},
		{"approval", agent(func(a *Agent) { a.Approval = "ask" }), "approval", ApprovalMissing, "ask"},
		{"approval of no meaning", agent(func(a *Agent) { a.Approval = "later" }), "approval", ApprovalMissing, "later"},
		{"approval of a refused effect", both(agent(func(a *Agent) { a.Approval, a.Effects = "ask", "controlled" }), args(`{"path":"/etc/passwd"}`)), "effects", HostReadDenied, "host_read"},

		{"tsh without words", shell(`{"args":[]}`), "tsh arguments", InvalidArguments, "no tool"},
		{"tsh with members", shell(`{"path":"a"}`), "tsh arguments", InvalidArguments, "alone"},
		{"tsh args and more", shell(`{"args":["fs.read"],"x":1}`), "tsh arguments", InvalidArguments, "alone"},
		{"tsh of a path", shell(`{"args":["/bin/sh"]}`), "tsh arguments", InvalidArguments, "tool name"},
		{"tsh of tsh", shell(`{"args":["tsh","fs.read"]}`), "tsh arguments", InvalidArguments, "itself"},
		{"tsh not allowed", both(shell(`{"args":["fs.read"]}`), agent(func(a *Agent) { a.Policy = rules(t, "allow coder_t tool:fs.read execute") })), "tsh policy", AgentPolicy, "no line allows coder_t tool:tsh execute"},
		{"inner not allowed", both(shell(`{"args":["fs.read"]}`), agent(func(a *Agent) { a.Policy = rules(t, "allow coder_t tool:tsh execute") })), "agent policy", AgentPolicy, "tool:fs.read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, tl, c := coder(t), fsRead(), read(good)
			tt.edit(&a, &tl, &c)
			d := Decide(a, tl, c)
			if classed := d.Effect != ""; classed == (tt.code == InvalidArguments) {
				t.Errorf("effect %q with code %q", d.Effect, d.Code)
			}
			if d.Allowed || d.Code != tt.code || !strings.Contains(d.Reason, tt.reason) || d.Reason == "" {
				t.Errorf("decision %+v, want code %s and reason with %q", d, tt.code, tt.reason)
			}
			if strings.Contains(d.Reason, "\n") {
				t.Errorf("reason %q is more than a line", d.Reason)
			}
			var first *Verdict
			for _, v := range Explain(a, tl, c) {
				if v.OK != (v.Code == "") {
					t.Errorf("verdict %+v: code and OK disagree", v)
				}
				if !v.OK && first == nil {
					first = &v
				}
			}
			if first == nil || first.Stage != tt.stage || first.Code != d.Code || first.Reason != d.Reason || first.Want == "" {
				t.Errorf("first refusal %+v, want stage %q and the decision's words %+v", first, tt.stage, d)
			}
		})
	}
}

func TestControlled(t *testing.T) {
	for class, want := range map[control.Effect]Code{
		"pure": "", "workspace_read": "", "workspace_mutation": ApprovalMissing, "host_read": HostReadDenied,
		"host_mutation": HostChangeDenied, "host_process": ProcessDenied, "network": NetworkDenied,
		"delegation": DelegationDenied, "extension": ExtensionDenied, "unknown": EffectUnknown,
	} {
		a, tl := coder(t), fsRead()
		a.Perm, a.Effects, tl.Effect = 7, "controlled", class
		if d := Decide(a, tl, read(`{"path":"a"}`)); d.Code != want || d.Allowed != (want == "") || d.Ask != (want == ApprovalMissing) {
			t.Errorf("%s: %+v, want %q", class, d, want)
		}
	}
}

// TestCommands: controlled lets commands pass that only look, the other controlled
// policy asks about each, and nobody else's tool is taken for a shell.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		path, args string
		safe       bool
	}{
		{"/ctx/tool/bash", `{"args":["-c","ls | head"]}`, true},
		{"/ctx/tool/bash", `{"script":"ls | head"}`, true},
		{"/ctx/tool/bash", `{"script":"ls","timeout_ms":1000}`, true},
		{"/ctx/tool/bash", `{"args":["{\"script\":\"ls\"}"]}`, true}, // the one word is the object
		{"/ctx/tool/bash", `{"args":["{\"script\":\"rm a\"}"]}`, false},
		{"/ctx/tool/bash", `{"script":"ls > a"}`, false},
		{"/ctx/tool/bash", `{"script":"ls","args":["a"]}`, false},
		{"/ctx/tool/bash", `{"script":"ls","env":"A=1"}`, false},
		{"/ctx/tool/bash", `{"args":["-c","rm a"]}`, false},
		{"/ctx/tool/bash", `{"args":["a.sh"]}`, false},
		{"/ctx/tool/shell.exec", `{"cmd":"cat a && ls"}`, true},
		{"/ctx/tool/shell.exec", `{"args":["cat","a","&&","ls"]}`, true},
		{"/ctx/tool/shell.exec", `{"args":["cat","a;","rm","a"]}`, false},
		{"/ctx/tool/shell.exec", `{"cmd":"echo $(rm a)"}`, false},
		{"/ctx/tool/shell.exec", `{"script":"ls"}`, false},
		{"/ctx/home/1000/tool/bash", `{"script":"ls"}`, false},
	} {
		dir, name := path.Split(c.path)
		a, sh := coder(t), fsRead()
		sh.Name, sh.Path, sh.Effect = libctx.Tool(name), dir+name, "host_process"
		sh.Schema = []byte(`{"type":"object"}` + "\n")
		a.Perm, a.Declared, a.Policy = 7, []libctx.Tool{sh.Name}, rules(t, "allow coder_t tool:"+name+" execute")
		call := Call{Name: sh.Name, Arguments: jsontext.Value(c.args), Direct: true}
		a.Effects = "controlled"
		if d := Decide(a, sh, call); d.Allowed != c.safe || d.Ask == c.safe {
			t.Errorf("%s %s: %+v", c.path, c.args, d)
		}
		a.Effects = "controlled-bash-approval"
		if d := Decide(a, sh, call); d.Allowed || !d.Ask || d.Code != ApprovalMissing {
			t.Errorf("%s %s, each asked about: %+v", c.path, c.args, d)
		}
	}
}

// TestQuestioned: of a tool that a person is always asked about it is known before
// there is a call.
func TestQuestioned(t *testing.T) {
	for _, c := range []struct {
		approval, effects, effect string
		want                      bool
	}{
		{"auto", "unsafe-host", "host_mutation", false},
		{"ask", "unsafe-host", "host_mutation", true},
		{"ask", "controlled", "pure", true},
		{"auto", "controlled", "workspace_mutation", true},
		{"auto", "controlled", "workspace_read", false},
		{"auto", "controlled", "host_mutation", false}, // is refused
	} {
		a, tl := coder(t), fsRead()
		a.Approval, a.Effects, tl.Effect = c.approval, c.effects, control.Effect(c.effect)
		if got := Questioned(a, tl); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestPermFree: the tools that perm says nothing about.
func TestPermFree(t *testing.T) {
	a, tl := coder(t), fsRead()
	a.Perm, tl.Name, tl.Effect = 0, "agent.update", "delegation"
	a.Policy = rules(t, "allow coder_t tool:tsh execute", "allow coder_t tool:agent.update execute")
	if d := Decide(a, tl, tsh(`{"args":["agent.update"]}`)); !d.Allowed {
		t.Errorf("agent.update without perm: %+v", d)
	}
	tl.Name = "calc"
	tl.Effect = "pure"
	a.Policy = rules(t, "allow coder_t tool:tsh execute", "allow coder_t tool:calc execute")
	if d := Decide(a, tl, tsh(`{"args":["calc"]}`)); !d.Allowed {
		t.Errorf("a pure tool without perm: %+v", d)
	}
}

func TestExplainNamesEveryRefusal(t *testing.T) {
	a, tl := coder(t), fsRead()
	a.Perm, a.Policy, a.Declared, tl.HasPolicy = 0, policy.Policy{}, nil, true
	var refused []string
	for _, v := range Explain(a, tl, read(`{}`)) {
		if !v.OK {
			refused = append(refused, v.Stage)
		}
	}
	want := []string{"schema", "declared", "perm", "agent policy", "tool policy"}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
}

func TestRoute(t *testing.T) {
	in, via, err := Route(tsh(`{"args":["fs.read","a b","é\u0001"]}`))
	if err != nil || via != Shell || in.Name != "fs.read" || in.Direct || string(in.Arguments) != `{"args":["a b","é\u0001"]}` {
		t.Errorf("Route = %+v, %q, %v", in, via, err)
	}
	in, via, err = Route(tsh(`{"args":["fs.list"]}`))
	if err != nil || string(in.Arguments) != `{"args":[]}` {
		t.Errorf("Route without words = %s, %q, %v", in.Arguments, via, err)
	}
	same := read(`{ "path" : 1 }`)
	in, via, err = Route(same)
	if err != nil || via != "" || !in.Direct || string(in.Arguments) != string(same.Arguments) {
		t.Errorf("Route of a tool = %+v, %q, %v", in, via, err)
	}
}

// TestSentences: every code has one, and none gives a policy away.
func TestSentences(t *testing.T) {
	for _, c := range Codes() {
		s, ok := sentences[c]
		if !ok || s != c.Sentence() || s == "" {
			t.Errorf("%s has no sentence", c)
		}
		for _, word := range []string{"policy", "_t", "perm ", "/ctx", "mode", "noexec"} {
			if strings.Contains(s, word) {
				t.Errorf("%s tells the model %q", c, word)
			}
		}
	}
	if len(Codes()) != len(sentences) {
		t.Errorf("%d codes, %d sentences", len(Codes()), len(sentences))
	}
	if AgentPolicy.Sentence() != "not permitted" || Code("later").Sentence() != "not permitted" {
		t.Error("the sentence of a policy refusal changed")
	}
}

func TestShown(t *testing.T) {
	a, tl := coder(t), fsRead()
	a.Declared, tl.Schema, a.Approval = nil, nil, "ask"
	if !Shown(a, tl) {
		t.Error("a tool some call of which is admitted is not shown")
	}
	for i, hide := range []func(){
		func() { tl = Tool{Name: "fs.read"} }, func() { tl.Kind = Irregular }, func() { tl.Mode = 0o644 },
		func() { a.Policy = policy.Policy{} }, func() { tl.HasPolicy = true }, func() { a.Perm = 0 },
		func() { tl.Effect = "" }, func() { a.Mounts = nil },
	} {
		a, tl = coder(t), fsRead()
		hide()
		if Shown(a, tl) {
			t.Errorf("case %d: %+v is shown", i, tl)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	a, tl := coder(b), fsRead()
	for _, c := range []Call{read(`{"path":"README.md"}`), tsh(`{"args":["fs.read","README.md"]}`)} {
		b.Run(fmt.Sprint(c.Name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := Decide(a, tl, c); !d.Allowed {
					b.Fatal(d)
				}
			}
		})
	}
}

// A builtin of the shell is a call of tsh itself: the shell's rule is all it
// needs, whatever tools there are, and usage is none of admission's business.
func TestBuiltin(t *testing.T) {
	a := Agent{Name: "coder", Subject: "coder_t", Approval: "ask", Effects: "controlled", Policy: rules(t, "allow coder_t tool:tsh execute")}
	for _, words := range []string{`"tools"`, `"load","fs.read"`, `"exit","999"`, `"which"`, `"help","--none"`} {
		c := tsh(`{"args":[` + words + `]}`)
		d := Decide(a, Tool{}, c)
		if !d.Allowed || d.Name != Shell || d.Via != "" || d.Effect != "pure" || d.Authorization != ByPolicy {
			t.Errorf("%s: %+v", words, d)
		}
		if all := Explain(a, Tool{Name: "tsh", Kind: Irregular}, c); len(all) != 2 || !all[0].OK || !all[1].OK {
			t.Errorf("%s: %+v", words, all)
		}
		if in, via, err := Route(c); err != nil || via != "" || in.Name != Shell || len(Builtin(c)) == 0 {
			t.Errorf("%s: %v via %q, %v", words, in, via, err)
		}
		a := a
		a.Policy = rules(t, "allow coder_t tool:tools execute")
		if d := Decide(a, Tool{}, c); d.Allowed || d.Code != AgentPolicy || !strings.Contains(d.Reason, "tool:tsh") {
			t.Errorf("%s: %+v", words, d)
		}
	}
	for _, c := range []Call{
		tsh(`{"args":["fs.read"]}`), tsh(`{"args":[]}`), tsh(`{"args":["Tools"]}`), tsh(`{"args":["tools",1]}`), tsh(`{"args":["tools"],"x":1}`),
		{Name: "tools", Arguments: []byte(`{"args":["tools"]}`)},
	} {
		if words := Builtin(c); words != nil {
			t.Errorf("%s %s is taken for %q", c.Name, c.Arguments, words)
		}
	}
}

// Standing is the first refusal that is not about the words of a call.
func TestStanding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, tl, _ := anyQuestion(t)
		v := Standing(a, tl)
		if v.OK != Shown(a, tl) || v.OK != (v.Code == "") {
			t.Fatalf("%+v", v)
		}
		d := Decide(a, tl, Call{Name: tl.Name, Arguments: []byte(`{"args":["a"]}`)})
		if d.Allowed && !v.OK {
			t.Fatalf("a call is allowed and the tool is not: %+v", v)
		}
	})
}

// The long outputs of a session are read by that session as if they lay in the
// workspace, and by nobody else; nothing is written there.
func TestOutputsOfTheSession(t *testing.T) {
	const at = "/home/agent/cache/spill/"
	for _, c := range []struct {
		session libctx.Session
		class   control.Effect
		path    string
		want    control.Effect
	}{
		{"s", "workspace_read", at + "s/01RUN-x.txt", "workspace_read"},
		{"s", "workspace_read", at + "s", "workspace_read"},
		{"s", "workspace_read", at + "s/../t/x", "host_read"},
		{"s", "workspace_read", at + "s2/x", "host_read"},
		{"s", "workspace_read", at + "t/x", "host_read"},
		{"s", "workspace_read", at, "host_read"},
		{"s", "workspace_read", "../home/agent/cache/spill/s/x", "host_read"},
		{"", "workspace_read", at + "s/x", "host_read"},
		{"", "workspace_read", at + "/x", "host_read"},
		{"s", "workspace_mutation", at + "s/x", "host_mutation"},
	} {
		tl := fsRead()
		tl.Effect = c.class
		for _, call := range []Call{read(`{"path":"` + c.path + `"}`), tsh(`{"args":["fs.read","` + c.path + `"]}`)} {
			call.Session = c.session
			a := coder(t)
			a.Perm = 7
			if d := Decide(a, tl, call); d.Effect != c.want || !d.Allowed {
				t.Errorf("%s of %q by session %q: %+v", c.class, c.path, c.session, d)
			}
		}
	}
}

// The files of skills that a model is pointed to are read as if they lay in the
// workspace, nothing beside them is, and nothing is written there.
func TestListedSkills(t *testing.T) {
	for _, c := range []struct {
		class control.Effect
		path  string
		want  control.Effect
	}{
		{"workspace_read", "/etc/cortexfs/skills/deploy/SKILL.md", "workspace_read"},
		{"workspace_read", "/home/agent/.agents/skills/a/b/SKILL.md", "workspace_read"},
		{"workspace_read", "/home/agent/.codex/skills/a/SKILL.md", "workspace_read"},
		{"workspace_read", "/home/agent/.codex/skills/a/secret", "host_read"},
		{"workspace_read", "/etc/cortexfs/skills/../providers.d/SKILL.md", "host_read"},
		{"workspace_read", "/etc/cortexfs/skillsets/SKILL.md", "host_read"},
		{"workspace_read", "/home/agent/SKILL.md", "host_read"},
		{"workspace_read", "../etc/cortexfs/skills/deploy/SKILL.md", "host_read"},
		{"workspace_mutation", "/home/agent/.agents/skills/a/SKILL.md", "host_mutation"},
	} {
		tl := fsRead()
		tl.Effect = c.class
		a := coder(t)
		a.Perm = 7
		if d := Decide(a, tl, read(`{"path":"`+c.path+`"}`)); d.Effect != c.want {
			t.Errorf("%s of %q: %+v", c.class, c.path, d)
		}
	}
}

// TestRelativePathsStartInCwd: what a call names is judged from where it starts,
// also through tsh, and also when it names nothing.
func TestRelativePathsStartInCwd(t *testing.T) {
	file := Tool{Name: "fs.read", Effect: "workspace_read"}
	for _, c := range []struct{ cwd, args, want string }{
		{"", `{"path":"a"}`, "workspace_read"},
		{"/workspace", `{"path":"a"}`, "workspace_read"},
		{"/workspace/sub", `{"path":"../a"}`, "workspace_read"},
		{"/workspace/sub", `{"path":"../../a"}`, "host_read"},
		{"/home/agent/cache/spill/other", `{"path":"x.txt"}`, "host_read"},
		{"/home/agent", `{}`, "host_read"},
		{"/home/agent", `{"path":"/workspace/a"}`, "workspace_read"},
		{"/home/agent", `{"args":["x"]}`, "host_read"},
		{"/workspace2", `{"path":"x"}`, "host_read"},
	} {
		call := Call{Name: "fs.read", Arguments: jsontext.Value(c.args), Direct: true, Cwd: c.cwd}
		if got := Decide(Agent{}, file, call).Effect; string(got) != c.want {
			t.Errorf("%s in %q: %s, want %s", c.args, c.cwd, got, c.want)
		}
		var form struct{ Args []string }
		if json.Unmarshal([]byte(c.args), &form) == nil && len(form.Args) > 0 {
			words, _ := json.Marshal(map[string]any{"args": append([]string{"fs.read"}, form.Args...)})
			through := Call{Name: "tsh", Arguments: words, Direct: true, Cwd: c.cwd}
			if got := Decide(Agent{}, file, through).Effect; string(got) != c.want {
				t.Errorf("tsh %s in %q: %s, want %s", words, c.cwd, got, c.want)
			}
		}
	}
}

// TestWordsThatArePaths: of a built-in tool the words that say where count, also
// when they are one arguments object, and of every other tool all of them.
func TestWordsThatArePaths(t *testing.T) {
	for _, c := range []struct {
		tool, args, want string
	}{
		{"fs.search", `["/etc"]`, "workspace"},
		{"fs.search", `["/etc","src"]`, "workspace"},
		{"fs.search", `["x","/etc"]`, "host"},
		{"fs.search", `["--context","2","/etc","--glob","/usr/**","src"]`, "workspace"},
		{"fs.search", `["--context","2","x","--hidden","/etc"]`, "host"},
		{"fs.search", `["--","--x","../.."]`, "host"},
		{"fs.search", `["x","--none","y"]`, "host"}, // the tool will refuse it
		{"fs.search", `["{\"pattern\":\"/etc\"}"]`, "workspace"},
		{"fs.search", `["{\"pattern\":\"x\",\"path\":\"/etc\"}"]`, "host"},
		{"fs.search", `["{\"path\":\"src\",\"path\":\"/etc\"}"]`, "host"},
		{"fs.search", `["{\"path\":"]`, "host"},
		{"fs.write", `["a.txt","/etc is a directory"]`, "workspace"},
		{"fs.write", `["/etc/motd","hello"]`, "host"},
		{"fs.replace", `["a.txt","/usr","/opt"]`, "workspace"},
		{"fs.replace", `["\"/etc/motd\"","a","b"]`, "host"},
		{"fs.read", `["/etc/passwd","1","2"]`, "host"},
		{"fs.list", `["--after","x"]`, "workspace"},
		{"own.tool", `["x","/etc"]`, "host"},
		{"own.tool", `["x","etc"]`, "workspace"},
		{"/ctx/home/1/tool/fs.search", `["/etc"]`, "host"}, // somebody's own of that name
		{"/ctx/home/1/tool/fs.search", `["etc"]`, "workspace"},
	} {
		dir, name := path.Split(c.tool)
		if dir == "" {
			dir = "/ctx/tool/"
		}
		tl := Tool{Name: libctx.Tool(name), Path: dir + name, Effect: "workspace_read"}
		if name == "fs.write" || name == "fs.replace" {
			tl.Effect = "workspace_mutation"
		}
		args := jsontext.Value(`{"args":` + c.args + `}`)
		if got := Decide(Agent{}, tl, Call{Name: tl.Name, Arguments: args, Direct: true}).Effect; !strings.HasPrefix(string(got), c.want+"_") {
			t.Errorf("%s %s: %s, not %s", tl.Path, args, got, c.want)
		}
	}
}
