package preamble

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/prompt"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/workspace"
)

// world is a tree with the agent coder on debug/echo, which may call fs.read
// through tsh and fs.list directly, and a workspace.
type world struct {
	t      *testing.T
	layout paths.Layout
	work   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	env := paths.Env{CTXRoot: filepath.Join(top, "tree"), Home: top, RuntimeDir: filepath.Join(top, "run"), UID: os.Geteuid()}
	w := &world{t, paths.New(env, env.CTXRoot), filepath.Join(top, "work")}
	_, err := tree.Init(w.layout, nil)
	w.ok(err)
	w.ok(tree.NewAgent(w.layout, tree.AgentSpec{
		Name: "coder", Owner: asuser.Self(), Model: "debug/echo",
		Tools: []libctx.Tool{"fs.read"}, Native: []libctx.Tool{"fs.list"}, System: []byte("Be kind.\n"),
	}))
	w.write(filepath.Join(w.work, "AGENTS.md"), "Tabs.\n")
	w.write(filepath.Join(w.work, "sub/AGENTS.md"), "{{agent}} uses spaces here.\n")
	w.write(filepath.Join(w.work, ".agents/skills/sew/SKILL.md"), "---\nname: sew\ndescription: needle and thread\n---\n")
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	w.ok(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

func (w *world) agent() *view.Agent {
	w.t.Helper()
	a, err := view.Load(w.layout, "coder")
	w.ok(err)
	return a
}

func TestSystem(t *testing.T) {
	w := newWorld(t)
	a := w.agent()
	ws, err := workspace.Resolve(w.work, a.Owner, w.layout.Protected(), a.Protection())
	w.ok(err)
	tools, declared, err := Native(w.layout, a)
	w.ok(err)
	if len(tools) != 2 || tools[0].Name != "fs.list" || tools[1].Name != "tsh" || !slices.Equal(declared, []libctx.Tool{"fs.list"}) {
		t.Errorf("declared %v of %+v", declared, tools)
	}
	again, _, err := Native(w.layout, a)
	w.ok(err)
	if string(again[0].Parameters) != string(tools[0].Parameters) || again[0].Parameters.Kind() != '{' {
		t.Errorf("%s, then %s", tools[0].Parameters, again[0].Parameters)
	}
	s, warnings := Look(w.layout, a, ws, "/workspace/sub")
	if len(warnings) != 0 {
		t.Errorf("warnings %v", warnings)
	}
	text, err := s.System(a, 0, declared, prompt.NoTools, prompt.InMessages)
	w.ok(err)
	last := 0
	for _, part := range []string{
		"# coder, an agent", "may be called directly: fs.list.", "Be kind.", "### /workspace/AGENTS.md\n\nTabs.",
		"### /workspace/sub/AGENTS.md\n\n{{agent}} uses spaces", "- sew: needle and thread (/workspace/.agents/skills/sew/SKILL.md)",
		prompt.NoTools, prompt.InMessages,
	} {
		at := strings.Index(text, part)
		if at < last {
			t.Errorf("%q is not there, or not in its place, in\n%s", part, text)
		}
		last = max(last, at)
	}

	// Nowhere, and in a window that has no room.
	s, _ = Look(w.layout, a, ws, "/home/agent")
	if got := s.RuleText(0); strings.Contains(got, "spaces") {
		t.Errorf("rules of another directory:\n%s", got)
	}
	if got := s.SkillText(100); got != "" {
		t.Errorf("skills in a window of 100 tokens: %q", got)
	}
}

func TestCandidates(t *testing.T) {
	w := newWorld(t)
	echo := filepath.Join(w.layout.Root, "model/debug/echo.d")
	w.write(filepath.Join(echo, "fallback"), "debug/tools\ndebug/gone\n")
	a := w.agent()
	if got := Chain(w.layout, a); !slices.Equal(got, []libctx.Model{"debug/echo", "debug/tools", "debug/gone"}) {
		t.Errorf("chain %v", got)
	}
	c, err := Check(w.layout, a, "debug/echo")
	if err != nil || c.Model.ID != "debug/echo" || c.Window != c.Model.Limit {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Check(w.layout, a, "debug/tools"); !errdefs.Is(err, errdefs.Denied) || errdefs.HintOf(err) == "" || c.Model != nil {
		t.Errorf("without a policy line: %+v, %v", c, err)
	}
	policy, err := tree.GetControl(w.layout, "coder", "policy")
	w.ok(err)
	w.ok(tree.SetControl(w.layout, "coder", "policy", append(policy, "allow coder_t model:debug/gone use\n"...)))
	if _, err := Check(w.layout, w.agent(), "debug/gone"); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	w.write(filepath.Join(echo, "limit"), "unknown\n")
	a.Window = 5000
	if _, err := Check(w.layout, a, "debug/echo"); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "model debug/echo") {
		t.Errorf("a window of a model without a limit: %v", err)
	}
	a.Model = "nobody"
	if got := Chain(w.layout, a); !slices.Equal(got, []libctx.Model{"nobody"}) {
		t.Errorf("chain of an alias that is not there: %v", got)
	}
}
