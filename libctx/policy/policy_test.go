package policy

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// accepted maps texts to their canonical form.
var accepted = map[string]string{
	"":                                     "",
	"allow coder_t tool:fs.read execute\n": "allow coder_t tool:fs.read execute\n",
	"\n\nallow\ta_t   tool:tsh \t execute  \n \t\nallow a_t model:m use\n": "allow a_t tool:tsh execute\nallow a_t model:m use\n",
	"allow a_t model:openai/gpt-5 use\n":                                   "allow a_t model:openai/gpt-5 use\n",
	"allow a_t network:default connect\n":                                  "allow a_t network:default connect\n",
	"allow a_t session:default resume\nallow a_t agent:b create\n":         "allow a_t session:default resume\nallow a_t agent:b create\n",
	"allow a_t shared:docs write\nallow a_t mount:src read\n":              "allow a_t shared:docs write\nallow a_t mount:src read\n",
}

var refused = []struct {
	text  string
	line  int
	token string
}{
	{"# comment\n", 1, "#"},
	{"deny a_t tool:x execute\n", 1, "deny"},
	{"Allow a_t tool:x execute\n", 1, "Allow"},
	{"allow a_t tool:x\n", 1, "allow a_t tool:x"},
	{"allow a_t tool:x execute now\n", 1, "allow a_t tool:x execute now"},
	{"allow a_t tool:x execute # why\n", 1, "allow a_t tool:x execute # why"},
	{"allow a_t tool:x execute\n\nallow -t tool:x execute\n", 3, "-t"},
	{"allow * tool:x execute\n", 1, "*"},
	{"allow a_t tool:* execute\n", 1, "*"},
	{"allow a_t tool: execute\n", 1, "tool:"},
	{"allow a_t tool execute\n", 1, "tool"},
	{"allow a_t file:x read\n", 1, "file"},
	{"allow a_t tool:a/b execute\n", 1, "a/b"},
	{"allow a_t tool:../x execute\n", 1, "../x"},
	{"allow a_t model:a/b/c use\n", 1, "b/c"},
	{"allow a_t network:eth0 connect\n", 1, "eth0"},
	{"allow a_t tool:x read\n", 1, "read"},
	{"allow a_t tool:x execute", 1, "allow a_t tool:x execute"},
	{"allow a_t tool:x execute\r\n", 1, ""},
	{"allow a_t tool:x\u00a0execute\n", 1, "allow a_t tool:x\u00a0execute"},
	{"allow a_t tool:x execute\nallow a_t tool:\x00 execute\n", 2, ""},
	{"allow a_t tool:\xff execute\n", 1, ""},
	{"\ufeffallow a_t tool:x execute\n", 1, ""},
	{strings.Repeat("\n", libctx.MaxControlFile+1), 0, ""},
}

func TestParse(t *testing.T) {
	for text, want := range accepted {
		p, err := Parse([]byte(text))
		if err != nil || string(p.Text()) != want {
			t.Errorf("%q: %q, %v", text, p.Text(), err)
		}
	}
	for _, c := range refused {
		p, err := Parse([]byte(c.text))
		var e *linefile.Error
		if !errors.As(err, &e) || errdefs.KindOf(err) != errdefs.Invalid || e.Line != c.line || e.Token != c.token {
			t.Errorf("%.60q: %v", c.text, err)
		}
		if len(p.Rules) > 0 {
			t.Errorf("%.60q: rules came with the error", c.text)
		}
	}
}

func TestAllows(t *testing.T) {
	p, err := Parse([]byte("allow a_t tool:x execute\nallow a_t session:default read\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		s                       libctx.Subject
		class, name, permission string
		want                    bool
	}{
		{"a_t", "tool", "x", "execute", true},
		{"a_t", "session", "default", "read", true},
		{"a_t", "session", "default", "write", false}, // no permission implies another
		{"b_t", "tool", "x", "execute", false},
		{"a_t", "tool", "X", "execute", false},
		{"a_t", "tool", "x.y", "execute", false},
		{"a_t", "tool", "", "execute", false},
		{"", "tool", "x", "execute", false},
	} {
		if got := p.Allows(c.s, c.class, c.name, c.permission); got != c.want {
			t.Errorf("%v: %v", c, got)
		}
	}
	if (Policy{}).Allows("a_t", "tool", "x", "execute") {
		t.Error("the empty policy allows something")
	}
}

func TestParseRule(t *testing.T) {
	r, err := ParseRule("allow a_t tool:x execute")
	if err != nil || r != (Rule{"a_t", "tool", "x", "execute"}) {
		t.Errorf("%v, %v", r, err)
	}
	for _, line := range []string{"", "  ", "allow a_t tool:x execute\nallow b_t tool:x execute", "allow a_t tool:x execute\n"} {
		if _, err := ParseRule(line); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func genRule(t *rapid.T) Rule {
	name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._+-]{0,10}x`)
	r := Rule{Subject: libctx.Subject(name.Draw(t, "subject")), Name: name.Draw(t, "name")}
	r.Class = rapid.SampledFrom([]string{"tool", "model", "shared", "session", "mount", "agent", "network"}).Draw(t, "class")
	r.Permission = rapid.SampledFrom(classes[r.Class].permissions).Draw(t, "permission")
	if r.Class == "network" {
		r.Name = "default"
	}
	if r.Class == "model" && rapid.Bool().Draw(t, "two") {
		r.Name += "/" + name.Draw(t, "model")
	}
	return r
}

func TestRulesSurviveWriting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Policy{rapid.SliceOfN(rapid.Custom(genRule), 0, 6).Draw(t, "rules")}
		got, err := Parse(want.Text())
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Rules) == 0 {
			want.Rules = nil
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		for _, r := range want.Rules {
			if one, err := ParseRule(r.String()); err != nil || one != r {
				t.Fatalf("%v, %v", one, err)
			}
			if !got.Allows(r.Subject, r.Class, r.Name, r.Permission) {
				t.Fatalf("%v is not allowed", r)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for text := range accepted {
		f.Add([]byte(text))
	}
	for _, c := range refused[:len(refused)-1] {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			if errdefs.KindOf(err) != errdefs.Invalid || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Fatalf("%q", err)
			}
			return
		}
		once := p.Text()
		again, err := Parse(once)
		if err != nil || !bytes.Equal(again.Text(), once) || len(again.Rules) != len(p.Rules) {
			t.Fatalf("%q is written as %q: %v", text, once, err)
		}
	})
}
