package effect

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

func intent(args string) Intent {
	return Intent{
		Principal: "coder_t", UID: 1000, Session: "default", Run: "01KB9QZ3M8T5V2N7X4C6D1E0FG", Call: "call-1", Via: "tsh", Tool: "fs.read",
		Path: "/ctx/tool/fs.read", Effect: "workspace_read", Policy: "controlled", Workspace: "/src", Cwd: "/workspace", Arguments: jsontext.Value(args),
	}
}

// TestEncoding: the layout is a promise to whoever keeps digests.
func TestEncoding(t *testing.T) {
	got := intent(`{"path":"a"}`).Encode()
	want := "cortexfs effect intent 1\nprincipal 7\ncoder_t\nuid 4\n1000\nsession 7\ndefault\nrun 26\n01KB9QZ3M8T5V2N7X4C6D1E0FG\ncall 6\ncall-1\n" +
		"via 3\ntsh\ntool 7\nfs.read\npath 17\n/ctx/tool/fs.read\neffect 14\nworkspace_read\npolicy 10\ncontrolled\n" +
		"workspace 4\n/src\ncwd 10\n/workspace\narguments 12\n{\"path\":\"a\"}\n"
	if string(got) != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if s := intent("{}").Digest().String(); len(s) != 71 || !strings.HasPrefix(s, "sha256:") {
		t.Errorf("digest %s", s)
	}
}

// TestSpellings: what a JSON library takes for one value are calls of their own.
func TestSpellings(t *testing.T) {
	seen := map[Digest]string{}
	for _, args := range []string{
		`{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":9007199254740993.0}`, `{"n":9.007199254740993e15}`,
		`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{ "a":1,"b":2}`, `{"a":1,"b":2}` + "\n",
		`{"s":"a"}`, `{"s":"\u0061"}`, `{"s":"\u0041"}`, `{"s":"\/"}`, `{"s":"/"}`, `{"n":1}`, `{"n":1.0}`, `{"n":1e0}`, `{"n":-0}`, `{"n":0}`, ``,
	} {
		d := intent(args).Digest()
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have one digest", args, other)
		}
		seen[d] = args
	}
}

// TestEveryMemberCounts: a member that is not in the encoding would not be bound.
func TestEveryMemberCounts(t *testing.T) {
	base := intent("{}").Digest()
	for n := range reflect.TypeFor[Intent]().NumField() {
		i := intent("{}")
		v := reflect.ValueOf(&i).Elem().Field(n)
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Uint32:
			v.SetUint(v.Uint() + 1)
		default:
			v.SetBytes([]byte("[]"))
		}
		if i.Digest() == base {
			t.Errorf("%s does not count", reflect.TypeFor[Intent]().Field(n).Name)
		}
	}
}

// TestApart: texts that move from one member to the next make another intent.
func TestApart(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("a1 \n")))
	rapid.Check(t, func(t *rapid.T) {
		draw := func() Intent {
			return Intent{Workspace: text.Draw(t, "workspace"), Cwd: text.Draw(t, "cwd"), Arguments: jsontext.Value(text.Draw(t, "arguments"))}
		}
		a, b := draw(), draw()
		same := a.Workspace == b.Workspace && a.Cwd == b.Cwd && string(a.Arguments) == string(b.Arguments)
		if (a.Digest() == b.Digest()) != same {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}
