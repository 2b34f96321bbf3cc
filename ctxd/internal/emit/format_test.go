package emit

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9]+m")

// bare is a text without its escapes.
func bare(s string) string { return sgr.ReplaceAllString(s, "") }

func TestCommand(t *testing.T) {
	for _, c := range []struct{ name, arguments, want string }{
		{"fs.read", `{"path":"README.md"}`, "fs.read README.md"},
		{"fs.read", `{"path":"my file","start":3,"lines":10}`, "fs.read 'my file' 3 10"},
		{"fs.read", `{"path":"a","lines":10,"numbers":true}`, "fs.read a --lines 10 --numbers"},
		{"fs.search", `{"pattern":"x y","mode":"files","ignore":false,"hidden":false}`, "fs.search 'x y' --mode files --no-ignore"},
		{"fs.read", `{"path":"a","other":1}`, `fs.read {"path":"a","other":1}`},
		{"fs.replace", `{"path":"a","old":"it's","new":"b\nc"}`, `fs.replace a "it's" "b\nc"`},
		{"shell.exec", `{"cmd":"go test ./... | tail -3"}`, "shell.exec go test ./... | tail -3"},
		{"bash", `{"args":["-c","echo hi"]}`, "bash -c 'echo hi'"},
		{"tsh", `{"args":["fs.read","README.md"]}`, "fs.read README.md"},
		{"tsh", `{"args":["shell.exec","seq 3;","ls"]}`, "shell.exec seq 3; ls"},
		{"shell.exec", `{"args":["seq 3;","ls"]}`, "shell.exec seq 3; ls"},
		{"tsh", `{"args":[]}`, ""},
		{"weather", `{"city":"Oslo"}`, "weather Oslo"},
		{"weather", `{"city":"Oslo","days":3}`, `weather {"city":"Oslo","days":3}`},
		{"weather", `{}`, "weather"},
		{"weather", `{"args":[1]}`, `weather {"args":[1]}`},
		{"weather", `{"city":""}`, "weather ''"},
		{"weather", `{"city":"\u001b[2J\n\u202e"}`, `weather "\x1b[2J\n\u202e"`},
		{"weather", `{"clipped":"…"}`, "weather '…'"},
	} {
		if got := command(libctx.Tool(c.name), jsontext.Value(c.arguments)); got != c.want {
			t.Errorf("%s %s: %s, not %s", c.name, c.arguments, got, c.want)
		}
	}
}

// show is what is shown of frames, without escapes.
func show(frames ...wire.Frame) string {
	s := shower{agent: "coder"}
	var out []byte
	for _, f := range frames {
		out = s.append(out, f)
	}
	return bare(string(out))
}

func TestShown(t *testing.T) {
	two := 2
	failed := results("c1", "shell.exec", "error", "make: *** No rule\n")
	failed.ExitCode, failed.DurationMS = &two, 31_415
	cut := results("c1", "fs.read", "ok", "head\n")
	cut.Truncated = true
	many := strings.Repeat("line\n", libctx.MaxEmitLines)
	for name, c := range map[string]struct {
		frames []wire.Frame
		want   string
	}{
		"a command that failed": {
			[]wire.Frame{calls("c1", "shell.exec", `{"cmd":"make"}`), decides("c1", true), failed},
			"┃ coder shell.exec make\n┃ make: *** No rule\n┃ error, exit 2, 31s shell.exec\n",
		},
		"a call through tsh": {
			[]wire.Frame{
				calls("c1", "tsh", `{"args":["fs.read","x"]}`),
				&wire.ToolPolicy{Call: "c1", Allowed: true, Via: "tsh", Name: "fs.read"}, results("c1", "tsh", "ok", "y"),
			},
			"┃ coder fs.read x\n┃ y\n┃ ok, 4ms fs.read\n",
		},
		"a refused call": {
			[]wire.Frame{calls("c1", "shell.exec", `{"cmd":"make"}`), decides("c1", false), results("c1", "shell.exec", "error", "not permitted")},
			"┃ coder shell.exec make\n┃ refused agent_policy: no line allows coder_t tool:shell.exec execute\n",
		},
		"calls beside each other": {
			[]wire.Frame{
				calls("c1", "a", `{}`), calls("c2", "b", `{}`), decides("c1", true), decides("c2", true),
				results("c2", "b", "ok", ""), results("c1", "a", "ok", "x"),
			},
			"┃ coder a\n┃ coder b\n┃ ok, 4ms b\n┃ x\n┃ ok, 4ms a\n",
		},
		"a call that nobody decided": {
			[]wire.Frame{calls("c1", "a", `{}`), results("c1", "a", "error", "the arguments are no object")},
			"┃ coder a\n┃ the arguments are no object\n┃ error, 4ms a\n",
		},
		"a result of a call of another run": {[]wire.Frame{results("c1", "a", "ok", "")}, "┃ coder a\n┃ ok, 4ms a\n"},
		"a decision about one":              {[]wire.Frame{decides("c1", true)}, "┃ coder c1\n"},
		"as many lines as are shown": {
			[]wire.Frame{results("c1", "a", "ok", many)},
			"┃ coder a\n" + strings.Repeat("┃ line\n", libctx.MaxEmitLines) + "┃ ok, 4ms a\n",
		},
		"one more": {
			[]wire.Frame{results("c1", "a", "ok", many+"x\n")},
			"┃ coder a\n" + strings.Repeat("┃ line\n", libctx.MaxEmitLines) + "┃ … 1 more line\n┃ ok, 4ms a\n",
		},
		"many more": {
			[]wire.Frame{results("c1", "a", "ok", many+many+"x")},
			"┃ coder a\n" + strings.Repeat("┃ line\n", libctx.MaxEmitLines) + "┃ … 21 more lines\n┃ ok, 4ms a\n",
		},
		"a long line": {
			[]wire.Frame{results("c1", "a", "ok", strings.Repeat("ä", libctx.MaxEmitBytes)+"\nx")},
			"┃ coder a\n┃ " + strings.Repeat("ä", libctx.MaxEmitBytes/2) + "…\n┃ … 1 more line\n┃ ok, 4ms a\n",
		},
		"one that was cut":   {[]wire.Frame{cut}, "┃ coder a\n"[:len("┃ coder ")] + "fs.read\n┃ head\n┃ … more lines\n┃ ok, 4ms fs.read\n"},
		"carriage returns":   {[]wire.Frame{results("c1", "a", "ok", "x\r\ny\rz\r\n")}, "┃ coder a\n┃ x\n┃ y\\rz\n┃ ok, 4ms a\n"},
		"terminal sequences": {[]wire.Frame{results("c1", "a", "ok", "\x1b]52;c;x\a")}, "┃ coder a\n┃ \\x1b]52;c;x\\x07\n┃ ok, 4ms a\n"},
	} {
		if got := show(c.frames...); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", name, got, c.want)
		}
	}
}

// Whatever tools, names and arguments say, what is shown is marked lines that
// are inert but for our own escapes, and not many of them.
func TestShownIsInert(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching("[\x1b\r\n\ta-c\u202e\u009b\\[\\]0-9;m]{0,200}"))
	rapid.Check(t, func(t *rapid.T) {
		s := shower{agent: "coder"}
		arguments, err := jsontext.AppendQuote([]byte(`{"x":`), strings.ToValidUTF8(text.Draw(t, "argument"), "?"))
		if err != nil {
			t.Fatal(err)
		}
		name := libctx.Tool(text.Draw(t, "name"))
		var out []byte
		for _, f := range []wire.Frame{
			calls("c", name, string(arguments)+"}"),
			&wire.ToolPolicy{Call: "c", Allowed: rapid.Bool().Draw(t, "allowed"), Code: text.Draw(t, "code"), Reason: text.Draw(t, "reason")},
			results("c", name, text.Draw(t, "status"), text.Draw(t, "content")),
		} {
			out = s.append(out, f)
		}
		got := bare(string(out))
		if got != inert.Text(got) || !utf8.ValidString(got) || !strings.HasSuffix(got, "\n") {
			t.Fatalf("%q", got)
		}
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if len(lines) > libctx.MaxEmitLines+4 || len(out) > libctx.MaxTermInput {
			t.Fatalf("%d lines, %d bytes", len(lines), len(out))
		}
		for _, l := range lines {
			if !strings.HasPrefix(l, "┃ ") {
				t.Fatalf("%q is not marked", l)
			}
		}
	})
}

// Only lines about calls are looked at.
func TestOf(t *testing.T) {
	for text, want := range map[string]bool{
		`{"type":"tool_call","call":"c","name":"a","arguments":{}}`: true,
		`{"type":"tool_policy","call":"c","allowed":true}`:          true,
		`{"type":"tool_result","call":"c","status":"ok"}`:           true,
		`{"type":"tool_progress","call":"c"}`:                       false,
		`{"type":"tool_call","call":"../c"}`:                        false,
		`{"type":"delta","text":"{\"type\":\"tool_call\""}`:         false,
		`{"type":"tool_`: false,
		``:               false,
	} {
		if got := of([]byte(text)) != nil; got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
