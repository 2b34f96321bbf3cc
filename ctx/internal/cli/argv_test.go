package cli

import (
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestReorder(t *testing.T) {
	for in, want := range map[string]string{
		"agent ls":                "ctx agent ls --",
		"agent ls --json":         "ctx --json=true agent ls --",
		"--json agent ls":         "ctx --json=true agent ls --",
		"agent --json ls":         "ctx --json=true agent ls --",
		"agent show coder --json": "ctx --json=true agent show -- coder",
		"--root /t agent ls":      "ctx --root=/t agent ls --",
		"agent ls --root /t":      "ctx --root=/t agent ls --",
		"agent ls --root=/t":      "ctx --root=/t agent ls --",
		"agent ls --root=":        "ctx --root= agent ls --",
		"agent ls --json=false":   "ctx --json=false agent ls --",

		"agent rm --purge coder":                   "ctx agent rm --purge=true -- coder",
		"agent rm coder --purge":                   "ctx agent rm --purge=true -- coder",
		"agent new a --tool x,y --tool z --exec f": "ctx agent new --tool=x,y --tool=z --exec=f -- a",
		"agent new --perm --x a":                   "ctx agent new --perm=--x -- a",

		// For commands with INPUT everything behind the first word of it is data.
		"agent send coder hello --json -h -- x":    "ctx agent send -- coder hello --json -h -- x",
		"agent send coder --json hello --json":     "ctx --json=true agent send -- coder hello --json",
		"agent send --session s coder -- --json x": "ctx agent send --session=s -- coder --json x",
		"agent send coder -- -- x":                 "ctx agent send -- coder -- x",
		"agent send -- coder --session s":          "ctx agent send -- coder --session s",
		"agent send coder -":                       "ctx agent send -- coder -",
		"agent send coder - --json":                "ctx agent send -- coder - --json",
		"agent tsh coder fs.list -l":               "ctx agent tsh -- coder fs.list -l",
		"agent tsh coder --raw -- fs.list -l":      "ctx agent tsh --raw=true -- coder fs.list -l",
		"agent set coder perm ---":                 "ctx agent set -- coder perm ---",
		"agent set coder perm r--":                 "ctx agent set -- coder perm r--",
		"agent set coder system.md be --quiet":     "ctx agent set -- coder system.md be --quiet",
		"agent cancel coder RUN --session s":       "ctx agent cancel --session=s -- coder RUN",
		"policy explain coder fs.read {}":          "ctx policy explain -- coder fs.read {}",
	} {
		l, err := reorder(table(), strings.Fields(in))
		if err != nil {
			t.Errorf("ctx %s: %v", in, err)
			continue
		}
		if got := strings.Join(l.argv(), " "); got != want {
			t.Errorf("ctx %s:\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestReorderKeepsWords(t *testing.T) {
	words := []string{"agent", "send", "coder", "", "two words", "-", "--", "日本\x1b"}
	l, err := reorder(table(), words)
	if err != nil || !slices.Equal(l.args, words[2:]) {
		t.Errorf("%q, %v", l.args, err)
	}
}

func TestReorderRefuses(t *testing.T) {
	for in, part := range map[string]string{
		"agent send coder --colour hi": "unknown flag --colour",
		"agent send coder -x":          "unknown flag -x",
		"agent ls --purge":             "unknown flag --purge",
		"agent ls -json":               "unknown flag -json",
		"--purge agent rm a":           "unknown flag --purge",
		"agent set coder perm -w-":     "unknown flag -w-",
		"agent send --session":         "needs a value",
		"--root":                       "needs a value",
		"agent rm a --purge=maybe":     "takes no value",
		"frobnicate":                   `unknown command "frobnicate"`,
		"agent frobnicate":             `unknown command "frobnicate"`,
		"-- agent ls":                  `unknown command "agent"`,
		"agent -- ls":                  `unknown command "ls"`,
		"--\x1b agent":                 "unknown flag",
	} {
		_, err := reorder(table(), strings.Split(in, " "))
		if !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), part) || errdefs.HintOf(err) == "" && !strings.Contains(part, "value") {
			t.Errorf("ctx %s: %v (hint %q), want %q", in, err, errdefs.HintOf(err), part)
		}
	}
}

func FuzzReorder(f *testing.F) {
	f.Add("agent send coder hello --json")
	f.Add("agent new --tool a --perm -w- x -- y")
	f.Add("--root=/x agent set a perm --- --")
	f.Add("help agent")
	f.Fuzz(func(t *testing.T, text string) {
		in := strings.Split(text, " ")
		l, err := reorder(table(), in)
		if err != nil {
			if !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%q: %v", in, err)
			}
			return
		}
		// No word is invented: each is one that was given.
		for _, w := range l.args {
			if !slices.Contains(in, w) {
				t.Fatalf("%q: word %q was not given", in, w)
			}
		}
		// What was put in order stays as it is.
		if l.help || l.version {
			return
		}
		again, err := reorder(table(), l.argv()[1:])
		if err != nil || !slices.Equal(again.argv(), l.argv()) {
			t.Fatalf("%q: %q, then %v, %v", in, l.argv(), again, err)
		}
	})
}

// Every command explains itself with an example, and every example is a line
// that the parser takes.
func TestHelp(t *testing.T) {
	var walk func(path []*command)
	walk = func(path []*command) {
		c := path[len(path)-1]
		text := help(path)
		if len(c.sub) == 0 {
			if len(c.examples) == 0 || !strings.Contains(text, "Examples\n") {
				t.Errorf("%s has no example", c.name)
			}
			if c.run == nil {
				t.Errorf("%s does nothing", c.name)
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if n := len([]rune(line)); n > 100 {
				t.Errorf("%s: a line of help has %d columns: %s", c.name, n, line)
			}
		}
		for _, s := range c.sub {
			walk(append(slices.Clone(path), s))
		}
	}
	walk([]*command{table()})
}
