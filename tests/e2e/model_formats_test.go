package e2e

import (
	"regexp"
	"strings"
	"testing"

	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// seenAgain is the data of a provider that scripted answers hold, and how often
// it is in each of the requests of TestFormats.
var seenAgain = map[string]struct {
	mark  string
	times [4]int
}{
	"openai.chat":        {"Sig", [4]int{0, 0, 0, 0}},
	"openai.responses":   {`"encrypted_content":"Sig=="`, [4]int{0, 1, 1, 2}},
	"anthropic.messages": {`"signature":"Sig=="`, [4]int{0, 1, 1, 2}},
	"google.generate":    {`"thoughtSignature":"Sig-_=="`, [4]int{0, 1, 2, 2}},
}

// TestFormats: one conversation with calls, whatever format the provider has,
// leaves the same ledger, but for what the provider wants to see again; and that
// it does see again.
func TestFormats(t *testing.T) {
	var first []string
	for _, f := range provider.Formats() {
		t.Run(f.Name, func(t *testing.T) {
			w := world.NewUser(t)
			s := provider.New(t, provider.InTurn(t,
				f.Answer([]string{"I ", "look."}, provider.Call{ID: "id_1", Name: "fs__read", Arguments: `{"path":"README.md"}`}, bash("id_2", "echo $((6*7)) > answer")),
				f.Answer(nil, provider.Call{ID: "id_1", Name: "fs__read", Arguments: `{"path":"answer"}`}),
				f.Answer([]string{"Grüne", " 日本 🙂."}),
				f.Answer([]string{"You are ", "welcome."})))
			w.MustCtx("provider", "add", "lab", "--base-url", s.URL, "--format", f.Name, "--model", "m", "--limit", "200000", "--no-key")
			manned(w, "lab/m", "bash", "--", "fs.read")
			const called = "start message tool_call tool_call usage tool_policy tool_result tool_policy tool_result tool_call usage tool_policy tool_result message usage changes done"
			want(t, say(w, "look around"), called, "ok")
			want(t, say(w, "thanks"), "start message usage done", "ok")

			ledger := plain(t, w)
			if first == nil {
				first = ledger
			}
			if diff := cmp.Diff(first, ledger); diff != "" {
				t.Errorf("the ledger is not that of the first format:\n%s", diff)
			}
			data := seenAgain[f.Name]
			requests := s.Requests()
			if len(requests) != len(data.times) {
				t.Fatalf("%d requests", len(requests))
			}
			for i, r := range requests {
				body := string(r.Body)
				if n := strings.Count(body, data.mark); n != data.times[i] {
					t.Errorf("request %d has %s %d times, not %d: %s", i+1, data.mark, n, data.times[i], body)
				}
				for call, since := range map[string]int{`"call-2-1"`: 1, `"call-2-2"`: 1, `"call-5-1"`: 2} {
					want := 0
					if i >= since {
						want = 2 // the call and its result
					}
					if n := strings.Count(body, call); n != want {
						t.Errorf("request %d has %s %d times, not %d: %s", i+1, call, n, want, body)
					}
				}
			}
		})
	}
}

// passing is what no two sessions have in common: times, names of runs and
// requests, and digests of them.
var passing = regexp.MustCompile(`"ts":"[^"]*|01[0-9A-Z]{24}|"say-[0-9]+|sha256:[0-9a-f]{64}|"duration_ms":[0-9]+|\[exit 0, [^\]]*\]`)

// plain is the ledger of the session without what passes, and without what only
// its provider understands; that belongs to nobody else.
func plain(t *testing.T, w *world.World) []string {
	t.Helper()
	text := strings.ReplaceAll(recorded(w), w.Workspace, "WORKSPACE")
	text = passing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, `"ts`):
			return `"ts":"`
		case strings.HasPrefix(s, `"d`):
			return `"duration_ms":0`
		case strings.HasPrefix(s, `"say`):
			return `"`
		}
		return ""
	})
	var out []string
	for line := range strings.Lines(text) {
		var members map[string]jsontext.Value
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if own, ok := members["opaque"]; ok && !strings.HasPrefix(string(own), `{"provider":"lab","model":"lab/m",`) {
			t.Errorf("opaque data is %s", own)
		}
		delete(members, "opaque")
		line, err := json.Marshal(members, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(line))
	}
	return out
}
