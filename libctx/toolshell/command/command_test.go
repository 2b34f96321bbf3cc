package command

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]Command{
		"tools":                 {Name: "tools"},
		"tools fs":              {Name: "tools", Words: []string{"fs"}},
		"tools -l fs":           {Name: "tools", Long: true, Words: []string{"fs"}},
		"tools fs --json":       {Name: "tools", JSON: true, Words: []string{"fs"}},
		"which a b":             {Name: "which", Words: []string{"a", "b"}},
		"which -- -v":           {Name: "which", Words: []string{"-v"}},
		"which -":               {Name: "which", Words: []string{"-"}},
		"command -v a":          {Name: "command", Words: []string{"a"}},
		"command a -v":          {Name: "command", Words: []string{"a"}},
		"help":                  {Name: "help"},
		"help load":             {Name: "help", Words: []string{"load"}},
		"load --help":           {Name: "help", Words: []string{"load"}},
		"command -h":            {Name: "help", Words: []string{"command"}},
		"load a b":              {Name: "load", Words: []string{"a", "b"}},
		"loads":                 {Name: "loads"},
		"exit":                  {Name: "exit"},
		"quit 255":              {Name: "exit", Code: 255},
		"exit 0":                {Name: "exit"},
		"pin a -- b":            {Name: "pin", Words: []string{"a", "b"}},
		"tools -- -l":           {Name: "tools", Words: []string{"-l"}},
		"which a --help":        {Name: "help", Words: []string{"which"}},
		"type tools which none": {Name: "type", Words: []string{"tools", "which", "none"}},
	} {
		got, err := Parse(strings.Fields(line))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", line, err, d)
		}
	}
}

// Wrong usage is an error with exit code 2, and says what is right.
func TestWrongUsage(t *testing.T) {
	for _, line := range []string{
		"tools a b", "tools -x", "tools --long", "which", "which -v a", "type", "command a", "command -v", "command",
		"help a b", "load", "load -f a", "unload", "loads a", "pin", "unpin", "pins a", "pins -l", "exit a", "exit -1",
		"exit 256", "exit +1", "exit 1 2", "quit x", "exit 99999999999999999999",
	} {
		words := strings.Fields(line)
		c, err := Parse(words)
		if !errdefs.Is(err, errdefs.Invalid) || errdefs.KindOf(err).Exit() != 2 || c.Name != "" {
			t.Errorf("%s: %v, %v", line, c, err)
			continue
		}
		b, _ := Find(words[0])
		if errdefs.HintOf(err) != "usage: "+b.Usage || !strings.HasPrefix(err.Error(), words[0]+": ") {
			t.Errorf("%s: %v (%s)", line, err, errdefs.HintOf(err))
		}
	}
	for _, words := range [][]string{nil, {""}, {"fs.read"}, {"Tools"}, {"tools "}} {
		if _, err := Parse(words); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v", words, err)
		}
	}
}

func TestBuiltins(t *testing.T) {
	for _, b := range Builtins() {
		if _, err := libctx.ParseTool(b.Name); err != nil || !Is(b.Name) || b.About == "" || !strings.HasPrefix(b.Usage, b.Name) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if Is("") || Is("fs.read") || Is("TOOLS") {
		t.Error("a builtin that is none")
	}
}

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                         nil,
		" \t ":                     nil,
		"tools":                    {"tools"},
		"  fs.read\tREADME.md  ":   {"fs.read", "README.md"},
		`fs.read "a b" 'c d'`:      {"fs.read", "a b", "c d"},
		`a"b c"d`:                  {"ab cd"},
		`a\ b \"c\"`:               {"a b", `"c"`},
		`"a\"b\\c\d"`:              {`a"b\c\d`},
		`'a\'`:                     {`a\`},
		`'' ""`:                    {"", ""},
		"# comment":                nil,
		"a # comment 'not closed":  {"a"},
		"a#b":                      {"a#b"},
		"'#'":                      {"#"},
		"$HOME `id` $(id) * ; | &": {"$HOME", "`id`", "$(id)", "*", ";", "|", "&"},
	} {
		got, err := Split(line)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v %s", line, err, d)
		}
	}
	for _, line := range []string{`'a`, `"a`, `a\`, `"a\"`, `'a\''`} {
		if words, err := Split(line); !errdefs.Is(err, errdefs.Invalid) || words != nil {
			t.Errorf("%q: %q, %v", line, words, err)
		}
	}
}

// Words that are quoted come out as they were, whatever is in them.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a b", `"`, `'`, `\`, "#x", "a\tb", "ü\x00", `a"'\ `} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		_, _ = Split(a)
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		double := func(s string) string {
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		}
		got, err := Split(quote(a) + " " + double(b))
		if err != nil || !slices.Equal(got, []string{a, b}) {
			t.Fatalf("%q %q came back as %q, %v", a, b, got, err)
		}
	})
}
