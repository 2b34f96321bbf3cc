package admit

import (
	"bytes"
	"io/fs"
	"slices"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/policy"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyQuestion draws an agent, a tool and a call that are right about half of
// the time in each respect.
func anyQuestion(t *rapid.T) (Agent, Tool, Call) {
	or := func(label string, good, bad any) any {
		if rapid.Bool().Draw(t, label) {
			return good
		}
		return bad
	}
	var a Agent
	a.Name, a.Subject, a.Path = "coder", "coder_t", []string{"/ctx/tool"}
	a.Identity = asuser.Identity{UID: rapid.SampledFrom([]uint32{0, 1000}).Draw(t, "uid"), GID: 1000}
	a.Declared = or("declared", []libctx.Tool{"fs.read"}, []libctx.Tool(nil)).([]libctx.Tool)
	a.Mounts = or("mounted", mount.Default(1000, "coder"), mount.Table(nil)).(mount.Table)
	if rapid.Bool().Draw(t, "noexec") {
		a.Mounts = append(slices.Clone(a.Mounts), mount.Line{Source: "/ctx/tool", Target: "/ctx/tool", ReadOnly: true, Options: []string{"noexec"}})
	}
	a.Perm = control.Perm(rapid.Uint8Max(7).Draw(t, "perm"))
	for _, line := range []string{"tsh", "fs.read", "other"} {
		if rapid.Bool().Draw(t, "allow "+line) {
			a.Policy.Rules = append(a.Policy.Rules, policy.Rule{Subject: "coder_t", Class: "tool", Name: line, Permission: "execute"})
		}
	}
	a.Effects = rapid.SampledFrom([]string{"unsafe-host", "controlled", "controlled-bash-approval", ""}).Draw(t, "effects")
	a.Approval = or("approval", "auto", "ask").(string)

	tl := Tool{Name: "fs.read", Path: "/ctx/tool/fs.read"}
	tl.Kind = rapid.SampledFrom([]Kind{Missing, Irregular, Regular}).Draw(t, "kind")
	tl.Mode = fs.FileMode(rapid.Uint32Max(0o777).Draw(t, "mode"))
	tl.UID = rapid.SampledFrom([]uint32{0, 1000}).Draw(t, "owner")
	tl.GID = rapid.SampledFrom([]uint32{0, 1000}).Draw(t, "group")
	tl.Schema = or("schema", []byte(readSchema), []byte(nil)).([]byte)
	tl.Effect = control.Effect(rapid.SampledFrom([]string{"", "pure", "workspace_read", "host_process", "unknown", "network"}).Draw(t, "effect"))
	tl.CLIOnly = rapid.Bool().Draw(t, "cli")
	tl.HasPolicy = rapid.Bool().Draw(t, "tool policy")
	tl.Policy = a.Policy

	args := rapid.SampledFrom([]string{`{"path":"a"}`, `{"args":["a"]}`, `{"args":["fs.read","a"]}`, `{"args":["load","fs.read"]}`, `{}`, `[]`, ``}).Draw(t, "arguments")
	c := Call{Name: rapid.SampledFrom([]libctx.Tool{"fs.read", Shell, "other"}).Draw(t, "name"), Arguments: jsontext.Value(args), Direct: rapid.Bool().Draw(t, "direct")}
	return a, tl, c
}

// TestNoStageGrants: a call is allowed exactly when every stage says so, and a
// decision is the first refusal, or else the first question.
func TestNoStageGrants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, tl, c := anyQuestion(t)
		d, all := Decide(a, tl, c), Explain(a, tl, c)
		first := slices.IndexFunc(all, func(v Verdict) bool { return !v.OK && !v.Ask })
		asks := first < 0
		if asks {
			first = slices.IndexFunc(all, func(v Verdict) bool { return !v.OK })
		}
		if d.Ask != (asks && first >= 0) {
			t.Fatalf("decision %+v, verdicts %+v", d, all)
		}
		if d.Allowed != (first < 0) {
			t.Fatalf("decision %+v, verdicts %+v", d, all)
		}
		if first >= 0 && (d.Code != all[first].Code || d.Reason != all[first].Reason || d.Authorization != "") {
			t.Fatalf("decision %+v, first refusal %+v", d, all[first])
		}
		for _, v := range all {
			if !v.OK && !slices.Contains(Codes(), v.Code) {
				t.Fatalf("%+v: unknown code", v)
			}
		}
	})
}

// TestAllowedMeansAll says in other words what an allowed call must have had.
func TestAllowedMeansAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, tl, c := anyQuestion(t)
		d := Decide(a, tl, c)
		if !d.Allowed {
			return
		}
		may := func(name string) bool {
			return slices.ContainsFunc(a.Policy.Rules, func(r policy.Rule) bool { return r.Name == name })
		}
		if Builtin(c) != nil {
			if !may("tsh") || d.Name != Shell || d.Via != "" || d.Effect != control.Pure {
				t.Fatalf("a builtin: %+v %+v", d, a)
			}
			return
		}
		line, mounted := a.Mounts.Covering(tl.Path)
		bits := map[control.Effect]control.Perm{"pure": 0, "workspace_read": control.Read, "host_process": control.Execute, "network": control.Execute}
		need, known := bits[tl.Effect]
		for what, ok := range map[string]bool{
			"a call of the tool":       d.Name == tl.Name,
			"the shell's rule":         c.Name != Shell || may("tsh") && d.Via == Shell,
			"a declaration":            c.Name == Shell || !c.Direct || slices.Contains(a.Declared, tl.Name),
			"a regular file":           tl.Kind == Regular,
			"an execute bit":           tl.Mode&0o111 != 0,
			"a mount without noexec":   mounted && !line.NoExec(),
			"a known effect":           known,
			"the perm bit":             a.Perm.Has(need),
			"the agent's rule":         may("fs.read"),
			"effects that let it pass": a.Effects == "unsafe-host" || a.Effects != "" && (tl.Effect == "pure" || tl.Effect == "workspace_read"),
			"no approval to ask for":   a.Approval == "auto",
		} {
			if !ok {
				t.Fatalf("allowed without %s: %+v %+v %+v", what, a, tl, c)
			}
		}
	})
}

// FuzzDecide: whatever comes as arguments, a decision comes out; what is
// allowed is strict JSON, and what the shell passes on are the words it got.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{
		`{"path":"README.md"}`, `{"args":["fs.read","a"]}`, `{"args":["fs.read","\u0000"]}`, `{"args":["load","fs.read"]}`, `{"args":[]}`, `{"args":null}`,
		`{"args":["fs.read"],"args":["x"]}`, `{"lines":1e999999999,"path":"a"}`, "{\"path\":\"\xff\"}", `[[[[`, `null`, ``, ` {} {}`,
	} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	a, tl := coder(f), fsRead()
	f.Fuzz(func(t *testing.T, args []byte, shell bool) {
		c := read(string(args))
		if shell {
			c.Name = Shell
		}
		d := Decide(a, tl, c)
		if d.Allowed == (d.Reason != "") || d.Allowed == (d.Code != "") {
			t.Fatalf("%+v", d)
		}
		if !d.Allowed {
			return
		}
		if !jsontext.Value(args).IsValid() || bytes.TrimLeft(args, " \t\r\n")[0] != '{' {
			t.Fatalf("allowed: %q", args)
		}
		if shell && Builtin(c) == nil {
			var out, in struct {
				Args []string `json:"args"`
			}
			inner, _, err := Route(c)
			if err != nil || json.Unmarshal(args, &out) != nil || json.Unmarshal(inner.Arguments, &in) != nil {
				t.Fatalf("%q does not route: %v", args, err)
			}
			if diff := cmp.Diff(append([]string{string(inner.Name)}, in.Args...), out.Args); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
