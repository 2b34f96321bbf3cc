package e2e

import (
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// look notes that it ran, and the first time waits for ever.
const look = `#!/bin/sh
echo "$1" >> looks
if ! [ -e begun ]; then
	echo > begun
	exec sleep 1000
fi
echo "seen $1"
`

// TestReplay: of the calls that a killed server leaves, those of a tool that only
// reads and may be repeated are made again, once, by the next run, before its
// model is asked; nobody knows what came of the one that ran, and those after it are
// told to have never begun.
func TestReplay(t *testing.T) {
	calls := `{"answer":{"calls":[{"name":"tsh","arguments":{"args":["look","here"]}},{"name":"tsh","arguments":{"args":["look","there"]}},{"name":"tsh","arguments":{"args":["shell.exec","echo x >> changes"]}}]}}`
	expect := func(n, here string) []string {
		return []string{
			`{"expect":{"messages":` + n + `,"last":"go on","contains":[` + here + `]}}`, `{"answer":{"text":"I see."}}`,
		}
	}
	for _, c := range []struct {
		name, replay string
		kinds        string // of the next run
		looks        string
		expect       []string
	}{
		{"safe", "safe\n", "start tool_policy tool_result tool_policy tool_result message usage_uncertain done",
			"here\nhere\nthere\n", expect("7", `"seen here","seen there","not executed: the host stopped"`)},
		{"unsafe", "unsafe\n", "start message usage_uncertain done", "here\n", expect("7", `"outcome unknown","not executed: the host stopped"`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := world.New(t)
			install(t, w, userTools(w), "look", look, map[string]string{
				"name": "look\n", "description": "looks\n", "effect": "workspace_read\n", "replay": c.replay,
			})
			script(manned(w, "debug/script", "look", "shell.exec"), append([]string{`{"block":"begin"}`, calls, `{"block":"after"}`}, c.expect...))
			conn := w.Dial("m")
			conn.Send(send("killed", "s", w.Workspace, "work"))
			w.AwaitExists(w.Workspace + "/begun")
			w.Kill(pid(w, "m"))
			w.AwaitGone("a killed server's sandboxes", w.Inside)
			want(t, say(w, "go on"), c.kinds, "ok")
			if got := w.Read(w.Workspace + "/looks"); got != c.looks {
				t.Errorf("looked at %q, want %q", got, c.looks)
			}
			if text := recorded(w); strings.Count(text, `"type":"tool_result"`) != 3 {
				t.Errorf("%s", text)
			}
			if frames := w.Dial("m").Ask(send("killed", "s", w.Workspace, "work"), "done"); world.Last(frames).Str("status") != "error" {
				t.Errorf("the killed run ends in %s", world.JSON(frames))
			}
		})
	}
}
