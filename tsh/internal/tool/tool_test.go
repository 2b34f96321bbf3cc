package tool

import (
	"context"
	"strings"
	"testing"

	"cortexfs.org/libctx/builtin/form"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

func TestCall(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a"}`:                  `{"path":"a"}`,
		`{"path":"a","x":1}`:            `{"path":"a","x":1}`,
		`{"args":["a"]}`:                `{"path":"a"}`,
		`{"args":[]}`:                   `{}`,
		`{"args":["{\"path\":\"b\"}"]}`: `{"path":"b"}`,
		`{"args":["{odd}"]}`:            `{"path":"{odd}"}`,
		`{"args":["--","{\"x"]}`:        `{"path":"{\"x"}`,
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
		err := Tool{Name: "fs.read", Run: func(_ context.Context, raw jsontext.Value, _ *Output) error {
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

// Arguments that are no strict JSON are refused for what is wrong with them,
// whether they come as they are or as the one word.
func TestFaultsAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a","content":"x","content":"y"}`: `member "content": is there twice`,
		`{"path":"a","content":"\ud800"}`:          `member "content": holds half of a UTF-16 surrogate pair`,
		`{"path":"a","content":"\udc00\ud800"}`:    `member "content": holds half of a UTF-16 surrogate pair`,
		`{"path":"a","content":"\q"}`:              `member "content": invalid escape sequence`,
		"{\"path\":\"a\",\"content\":\"\n\"}":      `member "content": invalid character`,
		`{"path":"a","content":"x"`:                `unexpected EOF`,
		`{"path":"a","content":{"b":1,"b":2}}`:     `member "b": is there twice`,
	} {
		word, err := form.Words([]string{args})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []jsontext.Value{jsontext.Value(args), word} {
			err := Tool{Name: "fs.write", Run: func(_ context.Context, raw jsontext.Value, _ *Output) error {
				var v struct {
					Path    string `json:"path"`
					Content string `json:"content"`
				}
				return Decode(raw, &v)
			}}.Call(t.Context(), raw, new(Output))
			if !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%s: %v", raw, err)
			}
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
