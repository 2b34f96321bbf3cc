package cli

import (
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	w := newWorld(t)
	for line, want := range map[string]string{
		"":                               "init status agent terminal model provider tool policy file doctor env abi complete version",
		"ag":                             "agent",
		"agent s":                        "show set send start stop status steer sessions",
		"frobnicate ":                    "",
		"agent frobnicate ":              "",
		"agent show ":                    "coder",
		"agent show c":                   "coder",
		"agent show x":                   "",
		"agent show coder ":              "",
		"--json agent show ":             "coder",
		"agent --root /nowhere show ":    "",
		"--root=/nowhere agent show ":    "",
		"agent get coder po":             "policy",
		"agent set coder perm r":         "",
		"agent rm --p":                   "--purge",
		"agent rm coder --":              "--purge --root --json --quiet --verbose --no-color --version --help",
		"agent send --scope ":            "private temp",
		"agent send --scope = te":        "temp", // as bash takes --scope=te apart
		"agent send --scope=":            "--scope=private --scope=temp",
		"agent send --workspace ":        ":directories",
		"agent send --cwd ":              "",
		"agent send coder ":              "",
		"agent send coder hello --":      "", // input, not a flag
		"agent tsh coder -- fs.r":        "fs.read",
		"agent new x --exec ":            ":files",
		"agent new x --exec ./a --mod":   "--model",
		"agent new x --model debug/e":    "debug/echo",
		"agent new x --model main ":      "",
		"agent new --tool tsh --tool fs": "fs.list fs.read fs.replace fs.search fs.stat fs.write",
		"agent start --supervisor ":      "auto systemd direct",
		"agent history --session d":      "",
		"policy explain coder fs.re":     "fs.read",
		"provider add x --preset op":     "openai openrouter",
		"provider add ":                  "",
		"provider key ":                  "",
		"file check ":                    ":files",
		"-- agent ":                      "",
	} {
		got := w.run(append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		var words []string
		for l := range strings.Lines(got.out) {
			word, _, _ := strings.Cut(l, "\t")
			words = append(words, word)
		}
		if got.code != 0 || got.err != "" || strings.Join(words, " ") != want {
			t.Errorf("ctx %s: %q, want %q (%+v)", line, words, want, got)
		}
	}
}
