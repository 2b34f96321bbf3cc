package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/libctx/prompt"
	provider "cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// TestPromptIsWhatIsSent: what `ctx agent prompt` prints is the system message
// that a provider receives, but for the blocks that only a run knows; and what
// `ctx agent usage` prints is what the provider said.
func TestPromptIsWhatIsSent(t *testing.T) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = 60001 // the providers of root are those of the machine
	}
	w := world.NewFor(t, uid)
	lab := provider.New(t, provider.InTurn(t, provider.Stream(provider.Content("Hi."), provider.Finish("stop"), provider.Usage(120, 7), "[DONE]")))
	w.MustCtx("provider", "add", "lab", "--base-url", lab.URL, "--model", "m", "--limit", "32000", "--no-key")
	w.MustCtx("model", "alias", "best", "lab/m")
	w.MustCtx("agent", "new", "m", "--model", "best", "--tool", "fs.read", "--native", "fs.list", "--allow", "model:lab/m use")
	w.Write(w.Root+"/agent/m.d/system.md", "Be {{agent}} and kind.\n")
	w.Mkdir(w.Workspace+"/sub", 0o755)
	w.Mkdir(w.Workspace+"/.agents", 0o755)
	w.Mkdir(w.Workspace+"/.agents/skills", 0o755)
	w.Mkdir(w.Workspace+"/.agents/skills/sew", 0o755)
	w.Write(w.Workspace+"/.agents/skills/sew/SKILL.md", "---\nname: sew\ndescription: needle\n---\n")
	w.Write(w.Workspace+"/AGENTS.md", "Tabs.\n")
	w.Write(w.Workspace+"/sub/AGENTS.md", "{{rules}} are for others.\n")

	shown := w.MustCtx("agent", "prompt", "--cwd", "/workspace/sub", "m")
	if out := w.MustCtx("agent", "send", "--cwd", "/workspace/sub", "m", "hello"); out != "Hi.\n" {
		t.Errorf("said %q", out)
	}
	lab.Await(1)
	sent := lab.Requests()[0].Chat(t).Messages[0]
	clock := regexp.MustCompile(`Unix time at the start of this run: \d+`)
	shown = clock.ReplaceAllString(shown, "TIME")
	shown = strings.ReplaceAll(strings.ReplaceAll(shown, prompt.NoHistory, prompt.InMessages), prompt.NoTools, "(empty)")
	if got := clock.ReplaceAllString(sent.Content, "TIME"); sent.Role != "system" || got != shown {
		t.Errorf("%s was sent:\n%s\nand this was shown:\n%s", sent.Role, got, shown)
	}
	for _, part := range []string{"fs.list", "Be {{agent}} and kind.", "Tabs.", "{{rules}} are for others.", "- sew: needle"} {
		if !strings.Contains(shown, part) {
			t.Errorf("no %q in\n%s", part, shown)
		}
	}
	if out := w.MustCtx("agent", "usage", "m"); !strings.Contains(out, "\tcompleted\tlab/m\t120\t0\t0\t7\tunknown\n") {
		t.Errorf("usage: %s", out)
	}
}
