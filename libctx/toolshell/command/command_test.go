package command

import (
	"fmt"
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

func TestParseTerminal(t *testing.T) {
	for line, want := range map[string]Command{
		"jobs":            {Name: "jobs"},
		"fg":              {Name: "fg"},
		"fg %2":           {Name: "fg", Words: []string{"%2"}},
		"kill %1 2":       {Name: "kill", Words: []string{"%1", "2"}},
		"kill -9 %1":      {Name: "kill", Signal: "9", Words: []string{"%1"}},
		"kill %1 -SIGHUP": {Name: "kill", Signal: "SIGHUP", Words: []string{"%1"}},
		"kill --help":     {Name: "help", Words: []string{"kill"}},
	} {
		words := strings.Fields(line)
		b, ok := FindTerminal(words[0])
		got, err := b.Parse(words[1:])
		if d := cmp.Diff(want, got); !ok || d != "" || err != nil || Is(b.Name) {
			t.Errorf("%s: %v %s", line, err, d)
		}
	}
	for _, line := range []string{"jobs a", "fg 1 2", "bg -x", "kill", "kill -9", "kill -9 -9 %1", "kill --signal %1", "status x"} {
		words := strings.Fields(line)
		b, _ := FindTerminal(words[0])
		if _, err := b.Parse(words[1:]); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", line, err)
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
	for _, b := range append(Builtins(), Terminal()...) {
		_, common := Find(b.Name)
		_, terminal := FindTerminal(b.Name)
		if _, err := libctx.ParseTool(b.Name); err != nil || common == terminal || Is(b.Name) != common || b.About == "" || !strings.HasPrefix(b.Usage, b.Name) {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if Is("") || Is("fs.read") || Is("TOOLS") {
		t.Error("a builtin that is none")
	}
}

// show writes lines as a test's table has them.
func show(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%q", l.Words)
		if l.Background {
			b.WriteString("&")
		}
	}
	return b.String()
}

func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		" \t \n\n":                 "",
		"tools":                    `["tools"]`,
		"  fs.read\tREADME.md  ":   `["fs.read" "README.md"]`,
		`fs.read "a b" 'c d'`:      `["fs.read" "a b" "c d"]`,
		`a"b c"d`:                  `["ab cd"]`,
		`a\ b \"c\"`:               `["a b" "\"c\""]`,
		`"a\"b\\c\d"`:              `["a\"b\\c\\d"]`,
		`'a\'`:                     `["a\\"]`,
		`'' ""`:                    `["" ""]`,
		"# comment":                "",
		"a # comment 'not closed":  `["a"]`,
		"a#b":                      `["a#b"]`,
		"'#'":                      `["#"]`,
		"$HOME `id` $(id) * ; | b": `["$HOME" "` + "`id`" + `" "$(id)" "*" ";" "|" "b"]`,
		"a &":                      `["a"]&`,
		"a b &  # later":           `["a" "b"]&`,
		"a '&'":                    `["a" "&"]`,
		`a \&`:                     `["a" "&"]`,
		`a ""&`:                    `["a" "&"]`,
		`a &""`:                    `["a" "&"]`,
		"a&":                       `["a&"]`,
		"a && b":                   `["a" "&&" "b"]`,
		"a & b":                    `["a" "&" "b"]`,
		"a & &":                    `["a" "&"]&`,
		"a\nb c # x\n\nd &\n":      `["a"]["b" "c"]["d"]&`,
		"a\\\nb \\\n c":            `["ab" "c"]`,
		"'a\nb' \"c\\\nd\ne\"":     `["a\nb" "cd\ne"]`,
		"'a\\\nb'":                 `["a\\\nb"]`,
		"# one\ntwo":               `["two"]`,
	} {
		got, err := Lines(text)
		if show(got) != want || err != nil || Open(text) {
			t.Errorf("%q: %v %s, want %s", text, err, show(got), want)
		}
	}
	for text, open := range map[string]bool{
		`'a`: true, `"a`: true, `a\`: true, `"a\"`: true, `'a\''`: true, "a\n'b": true, "&": false, "a\n &\nb": false,
	} {
		if got, err := Lines(text); !errdefs.Is(err, errdefs.Invalid) || got != nil || Open(text) != open {
			t.Errorf("%q: %s, %v", text, show(got), err)
		}
	}
}

// Where there is no background, & is a word, and rows are as one.
func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"a 'b c' &": `["a" "b c" "&"]`, "&": `["&"]`, "a &\nb": `["a" "&" "b"]`, "# no": "[]",
	} {
		if got, err := Split(text); fmt.Sprintf("%q", got) != want || err != nil {
			t.Errorf("%q: %v %q, want %s", text, err, got, want)
		}
	}
	if got, err := Split("'a"); !errdefs.Is(err, errdefs.Invalid) || got != nil {
		t.Errorf("%q %v", got, err)
	}
}

// Words that are quoted come out as they were, whatever is in them.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"", "a b", `"`, `'`, `\`, "#x", "a\tb", "ü\x00", `a"'\ `, "&", "a\nb", "\\\n"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		_, _ = Lines(a)
		quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
		double := func(s string) string {
			return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
		}
		got, err := Lines(quote(a) + " " + double(b) + "\n" + quote(b) + " &")
		want := []Line{{Words: []string{a, b}}, {Words: []string{b}, Background: true}}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Fatalf("%q %q came back as %s, %v", a, b, show(got), err)
		}
	})
}

// What other shells would not take for a word is named, unless it is quoted.
func TestShell(t *testing.T) {
	for text, want := range map[string]string{
		"say a":                   "",
		"say a | wc":              "|",
		"say a || b":              "||",
		"say a && b | c":          "&&",
		"say a ; b":               ";",
		"say a; b":                "a;",
		"say a > f":               ">",
		"say a >>f":               ">>f",
		"say a 2>&1":              "2>&1",
		"say a &>f":               "&>f",
		"say < f":                 "<",
		"say <<EOF":               "<<EOF",
		"say a &":                 "",
		"say 'a;' \"|\" \\> b\\;": "",
		"say a>b <b> -> 3":        "",
		"| say":                   "",
	} {
		lines, err := Lines(text)
		if err != nil || len(lines) != 1 || lines[0].Shell != want {
			t.Errorf("%q: %+v, %v", text, lines, err)
		}
	}
}
