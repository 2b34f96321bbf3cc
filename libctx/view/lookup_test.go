package view

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx/admit"
	"golang.org/x/sys/unix"
)

func TestLookup(t *testing.T) {
	w := newWorld(t)
	w.tool("tool", "calc", map[string]string{"parallel": "1\n", "replay": "safe\n"})
	a := w.load()
	got := w.lookup(a, "calc")
	if got.Kind != admit.Regular || got.Path != "/ctx/tool/calc" || got.Effect != "pure" || got.CLIOnly || got.HasPolicy ||
		got.Description != "adds" || !got.Parallel || !got.Replay || got.SchemaError != "" || got.Mode != 0o755 {
		t.Errorf("%+v", got)
	}
	if d := w.decide(a, "calc"); !d.Allowed {
		t.Errorf("%+v", d)
	}
	if got := w.lookup(a, "nothing"); got.Kind != admit.Missing {
		t.Errorf("%+v", got)
	}
}

// TestLookupOrder: the first regular executable file wins, what is none is
// passed over, and a tool closed to the agent is not replaced by another.
func TestLookupOrder(t *testing.T) {
	w := newWorld(t)
	own := "home/" + uid() + "/tool"
	w.dir(own)
	a := w.load()
	w.tool(own, "calc", nil)
	if got := w.lookup(a, "calc").Path; got != "/ctx/tool/calc" {
		t.Errorf("found %s", got)
	}
	w.ok(os.Chmod(w.path("tool/calc"), 0o644))
	if got := w.lookup(a, "calc").Path; got != "/ctx/"+own+"/calc" {
		t.Errorf("behind a file that is not executable: found %s", got)
	}
	w.relink("tool/calc")
	if got := w.lookup(a, "calc").Path; got != "/ctx/"+own+"/calc" {
		t.Errorf("behind a link: found %s", got)
	}
	w.ok(os.Remove(w.path("tool/calc")))
	w.write("tool/calc", "", 0o755)
	w.ok(os.Chmod(w.path("tool/calc"), 0o777))
	if got := w.lookup(a, "calc"); got.Kind != admit.Irregular || !strings.Contains(got.Obstacle, "/ctx/tool/calc: can be written") {
		t.Errorf("behind a loose tool: %+v", got.Tool)
	}
}

// TestToolAttacks: what is wrong with a tool's files is told by its own code
// and names the file.
func TestToolAttacks(t *testing.T) {
	file, dir := "tool/calc", "tool/calc.d"
	for name, tt := range map[string]struct {
		attack func(w *world)
		code   admit.Code
		reason string
	}{
		"a link": {func(w *world) { w.relink(file) }, admit.NotRegular, "/ctx/tool/calc: is a link"},
		"a dangling link": {func(w *world) {
			w.ok(os.Remove(w.path(file)))
			w.ok(os.Symlink("/nowhere", w.path(file)))
		}, admit.NotRegular, "/ctx/tool/calc: is a link"},
		"a directory": {func(w *world) {
			w.ok(os.Remove(w.path(file)))
			w.ok(os.Mkdir(w.path(file), 0o755))
		}, admit.NotRegular, "/ctx/tool/calc: is a directory"},
		"a FIFO": {func(w *world) {
			w.ok(os.Remove(w.path(file)))
			w.ok(unix.Mkfifo(w.path(file), 0o755))
		}, admit.NotRegular, "/ctx/tool/calc: is a FIFO"},
		"not executable":          {func(w *world) { w.ok(os.Chmod(w.path(file), 0o644)) }, admit.LinuxPermission, "0644"},
		"loose":                   {func(w *world) { w.ok(os.Chmod(w.path(file), 0o777)) }, admit.NotRegular, "/ctx/tool/calc: can be written"},
		"gone":                    {func(w *world) { w.ok(os.Remove(w.path(file))) }, admit.NotFound, "calc"},
		"the controls are a link": {func(w *world) { w.relink(dir) }, admit.NotRegular, "/ctx/tool/calc.d: is a link"},
		"the controls are loose":  {func(w *world) { w.ok(os.Chmod(w.path(dir), 0o777)) }, admit.NotRegular, "/ctx/tool/calc.d: can be written"},
		"the schema is loose":     {func(w *world) { w.ok(os.Chmod(w.path(dir+"/schema"), 0o666)) }, admit.NotRegular, "/ctx/tool/calc.d/schema: can be written"},
		"the effect is a link":    {func(w *world) { w.relink(dir + "/effect") }, admit.NotRegular, "/ctx/tool/calc.d/effect: is a link"},
		"the policy is a FIFO":    {func(w *world) { w.ok(unix.Mkfifo(w.path(dir+"/policy"), 0o644)) }, admit.NotRegular, "/ctx/tool/calc.d/policy: is a FIFO"},
		"the policy is empty":     {func(w *world) { w.write(dir+"/policy", "", 0o644) }, admit.ToolPolicy, "coder_t"},
		"the policy is broken":    {func(w *world) { w.write(dir+"/policy", "# all\n", 0o644) }, admit.ToolPolicy, "/ctx/tool/calc.d/policy: line 1"},
		"the policy is too long":  {func(w *world) { w.write(dir+"/policy", strings.Repeat("\n", 70000), 0o644) }, admit.ToolPolicy, "/ctx/tool/calc.d/policy: is longer"},
		"the effect is broken": {func(w *world) {
			w.write(dir+"/effect", "harmless\n", 0o644)
			w.control("coder", map[string]string{"perm": "rwx\n"})
		}, admit.EffectUnknown, "/ctx/tool/calc.d/effect: line 1"},
		"no effect": {func(w *world) {
			w.ok(os.Remove(w.path(dir + "/effect")))
			w.control("coder", map[string]string{"perm": "rwx\n"})
		}, admit.EffectUnknown, "unknown"},
		"the mode is broken": {func(w *world) { w.write(dir+"/mode", "exec\n", 0o644) }, admit.NotRegular, "/ctx/tool/calc.d/mode: line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.attack(w)
			a := w.load()
			d := w.decide(a, "calc")
			if d.Allowed || d.Code != tt.code || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("%+v, want %s with %q", d, tt.code, tt.reason)
			}
			if _, err := os.Lstat(w.prepare(a).Dir + "/tool/calc"); err == nil {
				t.Error("the refused tool is in the view")
			}
		})
	}
}

// TestSchemaAttacks: a schema that can not be used refuses every call, one that
// is not there only those it would have to judge.
func TestSchemaAttacks(t *testing.T) {
	for name, tt := range map[string]struct {
		attack func(w *world)
		reason string
		args   bool // the command-line form is admitted
	}{
		"no JSON":   {func(w *world) { w.write("tool/calc.d/schema", "hello\n", 0o644) }, "JSON", false},
		"no schema": {func(w *world) { w.write("tool/calc.d/schema", `{"type":7}`+"\n", 0o644) }, "is not a JSON Schema", false},
		"too long":  {func(w *world) { w.write("tool/calc.d/schema", strings.Repeat(" ", 70000), 0o644) }, "/ctx/tool/calc.d/schema: is longer", false},
		"missing":   {func(w *world) { w.ok(os.Remove(w.path("tool/calc.d/schema"))) }, "has no schema", true},
		"no controls": {func(w *world) {
			w.ok(os.RemoveAll(w.path("tool/calc.d")))
			w.write("tool/calc.d/mode", "json\n", 0o644)
			w.write("tool/calc.d/effect", "pure\n", 0o644)
		}, "has no schema", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.attack(w)
			w.control("coder", map[string]string{"tools": "calc\n"})
			a := w.load()
			call := admit.Call{Name: "calc", Arguments: []byte(`{}`), Direct: true}
			d := admit.Decide(a.Facts(), w.lookup(a, "calc").Tool, call)
			if d.Allowed || d.Code != admit.InvalidArguments || !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("%+v, want %q", d, tt.reason)
			}
			if d := w.decide(a, "calc"); d.Allowed != tt.args || !tt.args && d.Code != admit.InvalidArguments {
				t.Errorf("command-line form: %+v", d)
			}
		})
	}
}

// TestToolsOfOthers: files of a third user are no tools, and a user's own
// places are read with that user's rights.
func TestToolsOfOthers(t *testing.T) {
	w := newWorld(t)
	if !isRoot() {
		// What root owns counts for everybody, without any of it being ours.
		w.control("coder", map[string]string{"path": "/ctx/tool\n"})
		w.ok(os.Chmod(w.path("tool/calc.d/schema"), 0o000))
		call := admit.Call{Name: "calc", Arguments: []byte(`{}`)}
		d := admit.Decide(w.load().Facts(), w.lookup(w.load(), "calc").Tool, call)
		if d.Code != admit.InvalidArguments || !strings.Contains(d.Reason, "/ctx/tool/calc.d/schema") {
			t.Errorf("unreadable schema: %+v", d)
		}
		return
	}
	w.control("coder", map[string]string{"owner": "60001\n"})
	w.tool("home/60001/tool", "fs.read", map[string]string{"effect": "pure\n"})
	w.give("home/60001/tool", stranger)
	a := w.load()
	if d := w.decide(a, "fs.read"); !d.Allowed {
		t.Errorf("the owner's tool: %+v", d)
	}
	w.give("home/60001/tool/fs.read.d/effect", friend)
	if d := w.decide(a, "fs.read"); d.Code != admit.NotRegular || !strings.Contains(d.Reason, "/ctx/home/60001/tool/fs.read.d/effect: belongs to uid 60002") {
		t.Errorf("a control of another: %+v", d)
	}
	w.give("home/60001/tool", stranger)
	w.give("home/60001/tool/fs.read", friend)
	if d := w.decide(a, "fs.read"); d.Code != admit.NotRegular || !strings.Contains(d.Reason, "belongs to uid 60002") {
		t.Errorf("a tool of another: %+v", d)
	}
	// A file of root that the user can not read stays unread.
	w.give("home/60001/tool", stranger)
	w.give("home/60001/tool/fs.read.d/effect", 0)
	w.ok(os.Chmod(w.path("home/60001/tool/fs.read.d/effect"), 0o600))
	if d := w.decide(a, "fs.read"); d.Allowed || !strings.Contains(d.Reason, "permission denied") && d.Code != admit.Perm {
		t.Errorf("a control only root can read: %+v", d)
	}
	// The same for an unreadable schema.
	w.write("home/60001/tool/fs.read.d/effect", "pure\n", 0o644)
	w.write("home/60001/tool/fs.read.d/mode", "json\n", 0o644)
	w.write("home/60001/tool/fs.read.d/schema", "{}\n", 0o600)
	call := admit.Call{Name: "fs.read", Arguments: []byte(`{}`)}
	if d := admit.Decide(a.Facts(), w.lookup(a, "fs.read").Tool, call); d.Code != admit.InvalidArguments || !strings.Contains(d.Reason, "schema: permission denied") {
		t.Errorf("unreadable schema: %+v", d)
	}
}

// TestReplacedAfterLookup: what runs is what was looked up and admitted.
func TestReplacedAfterLookup(t *testing.T) {
	w := newWorld(t)
	a := w.load()
	tool := w.lookup(a, "calc")
	before := w.prepare(a)

	w.write("tool/new", "#!/bin/sh\necho evil\n", 0o755)
	w.ok(os.Rename(w.path("tool/new"), w.path("tool/calc")))
	w.write("tool/calc.d/new", "evil\n", 0o644)
	w.ok(os.Rename(w.path("tool/calc.d/new"), w.path("tool/calc.d/description")))

	checked := w.prepare(a, tool)
	for _, p := range []*Prepared{before, checked} {
		if got := w.content(p, "tool/calc"); got != "#!/bin/sh\necho calc\n" {
			t.Errorf("%s holds %q", p.Dir, got)
		}
		if got := w.content(p, "tool/calc.d/description"); got != "adds\n" {
			t.Errorf("%s describes %q", p.Dir, got)
		}
	}
	if got := w.content(w.prepare(a), "tool/calc"); !strings.Contains(got, "evil") {
		t.Errorf("the next view holds %q", got)
	}

	// Removed altogether, it still runs once.
	tool = w.lookup(a, "calc")
	w.ok(os.RemoveAll(w.path("tool/calc.d")))
	w.ok(os.Remove(w.path("tool/calc")))
	if got := w.content(w.prepare(a, tool), "tool/calc"); !strings.Contains(got, "evil") {
		t.Errorf("after removal: %q", got)
	}
	if _, err := os.Lstat(w.prepare(a).Dir + "/tool/calc"); err == nil {
		t.Error("the removed tool is in the next view")
	}
}

func (w *world) content(p *Prepared, rel string) string {
	w.Helper()
	b, err := os.ReadFile(p.Dir + "/" + rel)
	w.ok(err)
	return string(b)
}
