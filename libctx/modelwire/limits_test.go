package modelwire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// A message is as long as its limit, on both sides, and no longer; what JSON
// escapes counts as it is written.
func TestMessageLimit(t *testing.T) {
	empty, err := MarshalFrame(&MessageFrame{Content: []wire.Part{wire.Text("a")}, Stop: StopEnd})
	if err != nil {
		t.Fatal(err)
	}
	room := libctx.MaxModelMessage - len(empty) + 1
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{strings.Repeat("a", room), true}, {strings.Repeat("a", room+1), false},
		{strings.Repeat("\x01", room/6), true}, {strings.Repeat("\x01", room/6+1), false},
	} {
		f := &MessageFrame{Content: []wire.Part{wire.Text(c.text)}, Stop: StopEnd}
		line, err := MarshalFrame(f)
		if (err == nil) != c.ok || err != nil && !errdefs.Is(err, errdefs.TooBig) {
			t.Errorf("%d bytes: %v", len(c.text), err)
		}
		if len(line) > libctx.MaxModelMessage || len(line) > libctx.MaxRecord {
			t.Errorf("a line of %d bytes", len(line))
		}
		if c.ok {
			if _, err := DecodeFrame(line[:len(line)-1]); err != nil {
				t.Error(err)
			}
		}
	}
	long := `{"type":"message","stop":"end","content":[{"type":"text","text":"` + strings.Repeat("a", libctx.MaxModelMessage) + `"}]}`
	if _, err := DecodeFrame([]byte(long)); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("a long line: %v", err)
	}
}

func TestOtherLimits(t *testing.T) {
	message := func(parts ...wire.Part) *MessageFrame { return &MessageFrame{Content: parts, Stop: StopEnd} }
	many := func(n int) []wire.Part {
		var list []wire.Part
		for i := range n {
			list = append(list, Call(i+1, "tsh", "{}"))
		}
		return list
	}
	nested := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	deep := Call(1, "tsh", nested(libctx.MaxModelDepth))
	if deep.Invalid != "" {
		t.Error(deep.Invalid)
	}
	deeper := deep
	deeper.Arguments = jsontext.Value(nested(libctx.MaxModelDepth + 1))
	big := deep
	big.Arguments = jsontext.Value(`{"a":"` + strings.Repeat("a", libctx.MaxModelArguments-8) + `"}`)
	bigger := deep
	bigger.Arguments = jsontext.Value(`{"a":"` + strings.Repeat("a", libctx.MaxModelArguments-7) + `"}`)
	second := Call(2, "tsh", "{}")
	for name, c := range map[string]struct {
		f  Frame
		ok bool
	}{
		"as many parts as can be":    {message(many(libctx.MaxModelParts)...), true},
		"one part more":              {message(many(libctx.MaxModelParts + 1)...), false},
		"as deep as can be":          {message(deep), true},
		"deeper":                     {message(deeper), false},
		"as long as can be":          {message(big), true},
		"longer":                     {message(bigger), false},
		"calls in another order":     {message(second), false},
		"a result in it":             {message(wire.Part{Type: "tool_result", Call: "call-1", Status: "ok"}), false},
		"an empty text":              {message(wire.Text("")), false},
		"no stop":                    {&MessageFrame{}, false},
		"opaque data of nobody":      {&MessageFrame{Stop: StopEnd, Opaque: &Opaque{Data: jsontext.Value("1")}}, false},
		"opaque data of an alias":    {&MessageFrame{Stop: StopEnd, Opaque: &Opaque{Provider: "lab", Model: "main", Data: jsontext.Value("1")}}, false},
		"no opaque data":             {&MessageFrame{Stop: StopEnd, Opaque: &Opaque{Provider: "lab", Model: "lab/x"}}, false},
		"deep opaque data":           {&MessageFrame{Stop: StopEnd, Opaque: &Opaque{"lab", "lab/x", jsontext.Value(nested(libctx.MaxModelDepth + 1))}}, false},
		"an index too high":          {&CallStart{Index: libctx.MaxModelParts}, false},
		"an index too low":           {&CallDelta{Index: -1}, false},
		"fewer tokens than none":     {&Usage{Input: count(-1)}, false},
		"more tokens than can be":    {&Usage{Output: count(libctx.MaxModelTokens + 1)}, false},
		"more reasoning than output": {&Usage{Output: count(1), Reasoning: count(2)}, false},
		"no tokens":                  {&Usage{Input: count(0), CacheRead: count(0), CacheWrite: count(0), Output: count(0), Reasoning: count(0)}, true},
		"an unknown frame":           {&Other{Type: "weather"}, false},
		"text that is not UTF-8":     {&Delta{"\xff"}, false},
	} {
		line, err := MarshalFrame(c.f)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if _, err := DecodeFrame(line[:len(line)-1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	long := []byte(`{"op":"detect","x":"` + strings.Repeat("a", libctx.MaxModelFrame) + `"}`)
	if _, err := DecodeRequest(long); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("a long request: %v", err)
	}
}

func count(n int64) *int64 { return &n }

func TestCall(t *testing.T) {
	for _, c := range []struct{ name, arguments, want, invalid string }{
		{"tsh", ``, `{}`, ""}, {"tsh", " \r\n\t", `{}`, ""}, {"fs.read", "{ \"path\" : \"a\"\n}", `{"path":"a"}`, ""},
		{"tsh", `null`, `{}`, "the arguments are not an object: null"},
		{"tsh", `[]`, `{}`, "the arguments are not an object: []"},
		{"tsh", `"{}"`, `{}`, `the arguments are not an object: "{}"`},
		{"tsh", `{"a":1`, `{}`, `the arguments are not JSON: {"a":1`},
		{"tsh", `{"a":1,"a":2}`, `{}`, `the arguments are not JSON: {"a":1,"a":2}`},
		{"tsh", `{} {}`, `{}`, `the arguments are not JSON: {} {}`},
		{"tsh", "{\"a\":\"\xff\"}", `{}`, "the arguments are not JSON: {\"a\":\"\uFFFD\"}"},
		{"tsh", `{"a":"\ud800"}`, `{}`, `the arguments are not JSON: {"a":"\ud800"}`},
		{"", `{}`, `{}`, "not the name of a tool: "}, {"read file", `{"a":1}`, `{}`, "not the name of a tool: read file"},
		{"../x", `{}`, `{}`, "not the name of a tool: ../x"}, {"a\x00b", `{}`, `{}`, "not the name of a tool: a␀b"},
	} {
		p := Call(7, c.name, c.arguments)
		if p.Call != "call-7" || string(p.Arguments) != c.want || p.Invalid != c.invalid {
			t.Errorf("%q %q: %+v", c.name, c.arguments, p)
		}
		if named := libctx.Tool(c.name); p.Name != named && p.Name != "" || p.Name == "" && p.Invalid == "" {
			t.Errorf("%q: named %q", c.name, p.Name)
		}
	}
	if p := Call(1, "tsh", "{"+strings.Repeat("ä", libctx.MaxInvalid)); len(p.Invalid) > libctx.MaxInvalid || !utf8.ValidString(p.Invalid) || len(p.Invalid) < libctx.MaxInvalid-8 {
		t.Errorf("%d bytes of what is wrong", len(p.Invalid))
	}
	// Whatever a model writes makes a part that can be sent.
	rapid.Check(t, func(t *rapid.T) {
		arguments := rapid.OneOf(rapid.String(), rapid.StringMatching(`\{("[a-c\\"]*":[0-9{}\[\],]*,?)*\}`), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "arguments")
		name := rapid.OneOf(rapid.String(), rapid.Just("tsh")).Draw(t, "name")
		line, err := MarshalFrame(&MessageFrame{Content: []wire.Part{Call(1, name, arguments)}, Stop: StopToolCalls})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeFrame(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOpaqueFor(t *testing.T) {
	o := &Opaque{Provider: "lab", Model: "lab/big", Data: jsontext.Value(`1`)}
	if string(o.For("lab/big")) != "1" || o.For("lab/small") != nil || o.For("other/big") != nil {
		t.Error("data goes to another model")
	}
	if (*Opaque)(nil).For("lab/big") != nil || (&Opaque{Provider: "x", Model: "lab/big", Data: jsontext.Value(`1`)}).For("lab/big") != nil {
		t.Error("data of nobody")
	}
}

func TestFailure(t *testing.T) {
	f := Fail(errdefs.Provider, PhaseHeaders, ClassServer, "it %s", "broke\n\x1b[31m\x00")
	if strings.ContainsAny(f.Message, "\n\x1b\x00") || errdefs.KindOf(f) != errdefs.Provider || errdefs.KindOf(fmt.Errorf("x: %w", f)) != errdefs.Provider {
		t.Errorf("%q %v", f.Message, errdefs.KindOf(f))
	}
	if f.WithCode(strings.Repeat("é\n", 200)); len(f.ProviderCode) > libctx.MaxProviderCode || !utf8.ValidString(f.ProviderCode) || strings.Contains(f.ProviderCode, "\n") {
		t.Errorf("%q", f.ProviderCode)
	}
	if f := Fail(errdefs.Provider, PhaseHeaders, ClassServer, "%s", strings.Repeat("\xff", 1<<20)); len(f.Message) > libctx.MaxFailureText || !utf8.ValidString(f.Message) {
		t.Errorf("%d bytes", len(f.Message))
	}
	for d, want := range map[time.Duration]int64{
		0: 0, -time.Hour: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, 1<<63 - 1: 86400000, 25 * time.Hour: 86400000,
	} {
		if got := f.WithRetryAfter(d).RetryAfterMS; got != want {
			t.Errorf("%v: %d", d, got)
		}
	}
	good := *Fail(errdefs.Provider, PhaseHeaders, ClassServer, "x")
	for name, spoil := range map[string]func(*Failure){
		"no code": func(f *Failure) { f.Code = "" }, "a phase": func(f *Failure) { f.Phase = "later" }, "a class": func(f *Failure) { f.Class = "" },
		"a status": func(f *Failure) { f.Status = 7 }, "a wait": func(f *Failure) { f.RetryAfterMS = -1 }, "a long wait": func(f *Failure) { f.RetryAfterMS = 1 << 40 },
		"a long code": func(f *Failure) { f.ProviderCode = strings.Repeat("x", libctx.MaxProviderCode+1) },
	} {
		f := good
		spoil(&f)
		if _, err := MarshalFrame(&Error{Failure: f}); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	if ProviderOf("lab/big") != "lab" || NameOf("lab/big") != "big" || ProviderOf("main") != "" || NameOf("main") != "" {
		t.Error("names of models")
	}
}
