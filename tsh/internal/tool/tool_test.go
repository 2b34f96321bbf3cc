package tool

import (
	"context"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

var form = Form{Operands: []string{"path", "start"}, Numbers: []string{"start", "lines"}, Texts: []string{"after"}, Switches: []string{"all"}}

func TestForm(t *testing.T) {
	for _, c := range []struct {
		words string
		want  string // "" means refused
	}{
		{"", `{}`},
		{"a", `{"path":"a"}`},
		{"a --all", `{"all":true,"path":"a"}`},
		{"--all a --lines 3", `{"all":true,"lines":3,"path":"a"}`},
		{"--lines=3 a", `{"lines":3,"path":"a"}`},
		{"a --after=", `{"after":"","path":"a"}`},
		{"--after --all a", `{"after":"--all","path":"a"}`},
		{"-- --all", `{"path":"--all"}`},
		{"-", `{"path":"-"}`},
		{"./-x", `{"path":"./-x"}`},
		{"a --", `{"path":"a"}`},
		{"a 7", `{"path":"a","start":7}`},
		{"a b", ""},
		{"-x", ""},
		{"--none a", ""},
		{"--all=1", ""},
		{"a b c", ""},
		{"--lines", ""},
		{"--lines x", ""},
		{"--lines 99999999999", ""},
		{"--=x", ""},
		{"---all", ""},
		{"\xff", ""},
	} {
		words := strings.Fields(c.words)
		got, err := form.Object(words)
		if string(got) != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q makes %s, %v", c.words, got, err)
		}
		if err != nil && !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", c.words, err)
		}
	}
	if got, err := (Form{Rest: "cmd"}).Object([]string{"echo", "--all", "--", " b"}); string(got) != `{"cmd":"echo --all --  b"}` {
		t.Errorf("rest: %s, %v", got, err)
	}
}

func TestCall(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a"}`:                  `{"path":"a"}`,
		`{"path":"a","x":1}`:            `{"path":"a","x":1}`,
		`{"args":["a"]}`:                `{"path":"a"}`,
		`{"args":[]}`:                   `{}`,
		`{"args":null}`:                 "",
		`{"args":"a"}`:                  "",
		`{"args":[1]}`:                  "",
		`{"args":["a"],"path":"b"}`:     "",
		`["a"]`:                         "",
		``:                              "",
		`{"path":"a"} {}`:               "",
		`{"path":"a","path":"b"}`:       "",
		`{"path":"` + "\xff" + `"}`:     "",
		strings.Repeat(`{"a":`, 20_000): "",
	} {
		got := ""
		err := Tool{Form: form, Run: func(_ context.Context, raw jsontext.Value, _ *Output) error {
			got = string(raw)
			return nil
		}}.Call(t.Context(), jsontext.Value(args), new(Output))
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%.80s runs with %s, %v", args, got, err)
		}
		if err != nil && !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%.80s: %v", args, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for args, ok := range map[string]bool{
		`{}`: true, `{"path":"a","start":1}`: true, `{"path":null}`: false, `{"start":"1"}`: false, `{"start":1.5}`: false,
		`{"Path":"a"}`: false, `{"other":1}`: false, `{"start":1e400}`: false, `null`: false, `[]`: false,
	} {
		var v struct {
			Path  string `json:"path"`
			Start *int   `json:"start"`
		}
		if err := Decode(jsontext.Value(args), &v); (err == nil) != ok || err != nil && !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestContent(t *testing.T) {
	out := new(Output)
	if out.Content() != "" {
		t.Error("empty output has content")
	}
	out.WriteString("a")
	out.Notef("one of %d", 2)
	if got := out.Content(); got != "a\n[one of 2]" {
		t.Errorf("%q", got)
	}
	out.Notef("%s", strings.Repeat("x", Reserve))
	if n := len(out.Notes()); n != 1 {
		t.Errorf("%d notes after one that is too long", n)
	}
}
