package libctx

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parsers are the checking constructors of object names.
var parsers = map[string]func(string) error{
	"agent":   func(s string) error { _, err := ParseAgent(s); return err },
	"subject": func(s string) error { _, err := ParseSubject(s); return err },
	"tool":    func(s string) error { _, err := ParseTool(s); return err },
	"session": func(s string) error { _, err := ParseSession(s); return err },
	"space":   func(s string) error { _, err := ParseSpace(s); return err },
	"client":  func(s string) error { _, err := ParseClientID(s); return err },
	"call":    func(s string) error { _, err := ParseCall(s); return err },
	"model":   func(s string) error { _, err := ParseModel(s); return err },
}

func TestNames(t *testing.T) {
	good := []string{"a", "A9", "0", "fs.read", "a_b-c+d.e", "coder.v1", "a.socket", "a.d.x", strings.Repeat("a", 62)}
	bad := []string{
		"", ".", "..", ".a", "-a", "_a", "+a", "a b", "a\n", "a\x00", "\x00", "ä", "a\u202eb", "a\\b", "a:b", "a*", "a~",
		"../a", "/a", "a/", "/", "a.sock", "a.d", "x.y.d", strings.Repeat("a", 65), "a\xff",
	}
	for kind, parse := range parsers {
		for _, s := range good {
			if err := parse(s); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		for _, s := range bad {
			err := parse(s)
			var name *NameError
			if !errors.As(err, &name) {
				t.Errorf("%s %q: %v", kind, s, err)
				continue
			}
			if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 200 {
				t.Errorf("%s: not a short plain line: %q", kind, err)
			}
		}
	}
}

func TestNamesOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		good bool
	}{
		"an agent of 62 bytes":        {parsers["agent"](strings.Repeat("a", MaxAgentName)), true},
		"an agent of 63 bytes":        {parsers["agent"](strings.Repeat("a", MaxAgentName+1)), false},
		"the subject of that agent":   {parsers["subject"](string(Agent(strings.Repeat("a", MaxAgentName)).Subject())), true},
		"a tool of 64 bytes":          {parsers["tool"](strings.Repeat("a", MaxName)), true},
		"the session index":           {parsers["session"]("index"), false},
		"the session default":         {parsers["session"](string(DefaultSession)), true},
		"a model of a provider":       {parsers["model"]("openai/gpt-5.1"), true},
		"a model alias":               {parsers["model"]("main"), true},
		"a model of nothing":          {parsers["model"]("openai/"), false},
		"a model of no provider":      {parsers["model"]("/gpt"), false},
		"a model of three":            {parsers["model"]("a/b/c"), false},
		"a model that leaves its dir": {parsers["model"]("../b"), false},
	} {
		if (c.err == nil) != c.good {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func TestUnmarshalText(t *testing.T) {
	var a Agent = "before"
	if err := a.UnmarshalText([]byte("../x")); err == nil || a != "before" {
		t.Errorf("a refused name left %q, %v", a, err)
	}
	if err := a.UnmarshalText([]byte("coder")); err != nil || a != "coder" {
		t.Errorf("%q, %v", a, err)
	}
}

func TestRunsAndEvents(t *testing.T) {
	seen := map[Run]bool{}
	for range 1000 {
		r := NewRun()
		if seen[r] {
			t.Fatalf("%s twice", r)
		}
		seen[r] = true
		if _, err := ParseRun(string(r)); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseClientID(string(r)); err != nil {
			t.Fatalf("a run id is an object name: %v", err)
		}
	}
	r := NewRun()
	for _, s := range []string{
		"", ".", ".1", string(r), string(r) + ".", string(r) + ".0", string(r) + ".01", string(r) + ".-1", string(r) + ".+1",
		string(r) + ".1.2", string(r) + ".1 ", "x.1", strings.ToLower(string(r)) + "x.1", string(r) + ".99999999999999999999",
	} {
		if _, err := ParseEvent(s); err == nil {
			t.Errorf("%q is no event", s)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<40).Draw(t, "n")
		e, err := ParseEvent(string(MakeEvent(r, n)))
		if err != nil || e != MakeEvent(r, n) || e.Run() != r {
			t.Fatalf("%v, %v", e, err)
		}
	})
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"a", "fs.read", "../a", "a.sock", "a.d", "index", "", "ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tool, err := ParseTool(s)
		if err != nil {
			if tool != "" {
				t.Fatalf("%q with %v", tool, err)
			}
			return
		}
		// What passes can be one path element, one word and one line.
		if string(tool) != s || len(s) > MaxName || strings.ContainsAny(s, "/\n \x00:") || s[0] == '.' || s[0] == '-' {
			t.Fatalf("%q passed", s)
		}
	})
}
