package toolshell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/libctx/toolshell/settings"
)

// shelf is a catalog of made-up tools.
type shelf []Item

func (s shelf) List() ([]Item, error) { return s, nil }

func (s shelf) Find(name libctx.Tool) (Item, error) {
	for _, i := range s {
		switch {
		case i.Name == name && i.Refused != "":
			return Item{}, errdefs.New(errdefs.Denied, "%s: not permitted", name)
		case i.Name == name:
			return i, nil
		}
	}
	return Item{}, errdefs.New(errdefs.NotFound, "%s: no such tool", name).WithHint("tsh tools")
}

var tools = shelf{
	{Name: "fs.list", Path: "/ctx/tool/fs.list", Description: "List.\nMore.", Schema: `{"properties":{"path":{"type":"string","description":"where\tto look"},"all":{"type":["boolean","null"]}},"required":["path"]}`},
	{Name: "fs.read", Path: "/ctx/tool/fs.read", Description: "Read. And more."},
	{Name: "fs.write", Path: "/ctx/tool/fs.write", Description: "Write.", Refused: "perm"},
	{Name: "help", Path: "/ctx/tool/help", Description: "a tool with the name of a builtin"},
	{Name: "note", Path: "/ctx/home/7/tool/note", Description: "a\ttab"},
	{Name: "path", Path: "/ctx/tool/path", Description: "not the topic"},
}

func newShell() *Shell {
	return &Shell{
		Catalog: tools, Store: &Memory{}, Topics: Topics(),
		Config: func() (settings.Config, error) { return settings.Config{MaxLoadedTools: 2}, nil },
	}
}

func TestRun(t *testing.T) {
	sh := newShell()
	for _, c := range []struct {
		line string
		exit int
		out  string
		errs string // as Complaint has them
	}{
		{"tools", 0, "fs.\nhelp\nnote\npath\n", ""},
		{"tools fs", 0, "fs.list\nfs.read\n", ""},
		{"tools fs.", 0, "fs.list\nfs.read\n", ""},
		{"tools none", 0, "", ""},
		{"tools -l fs", 0, "fs.list\t/ctx/tool/fs.list\tList.\nfs.read\t/ctx/tool/fs.read\tRead.\nfs.write\t/ctx/tool/fs.write\tWrite.\tperm\n", ""},
		{"tools --json note", 0, "", ""},
		{"tools --json fs.w", 0, "", ""},
		{"which fs.read", 0, "/ctx/tool/fs.read\n", ""},
		{"which fs.write none fs.read ../x", 13, "/ctx/tool/fs.read\n",
			"tsh: fs.write: not permitted\ntsh: none: no such tool\ntsh: tool name \"../x\" holds a character that is not allowed\nhint: tsh tools\n"},
		{"type tools fs.read help", 0, "tools is a tsh builtin\nfs.read is /ctx/tool/fs.read\nhelp is a tsh builtin\n", ""},
		{"type none", 1, "", "tsh: none: no such tool\nhint: tsh tools\n"},
		{"command -v which note", 0, "which\n/ctx/home/7/tool/note\n", ""},
		{"command note", 2, "", "tsh: command: only command -v is offered\nhint: usage: command -v NAME…\n"},
		{"help fs.list", 0, "fs.list\n/ctx/tool/fs.list\n\nList.\nMore.\n\n  all ([\"boolean\",\"null\"])\n  path (string, required)  where to look\n", ""},
		{"help fs.read", 0, "fs.read\n/ctx/tool/fs.read\n\nRead. And more.\n", ""},
		{"help fs.write", 13, "", "tsh: fs.write: not permitted\n"},
		{"help which", 0, "which NAME…\nprint the files that tools are\n", ""},
		{"help path", 0, "path\n/ctx/tool/path\n\nnot the topic\n", ""},
		{"help loading", 0, Topics()["loading"], ""},
		{"loads", 0, "", ""},
		{"load fs.read", 0, "loaded fs.read\t/ctx/tool/fs.read\tmetadata\n", ""},
		{"load fs.write", 13, "", "tsh: fs.write: not permitted\n"},
		{"load none note", 1, "loaded note\t/ctx/home/7/tool/note\tmetadata\n", "tsh: none: no such tool\nhint: tsh tools\n"},
		{"loads", 0, "fs.read\t/ctx/tool/fs.read\tmetadata\tRead.\nnote\t/ctx/home/7/tool/note\tmetadata\ta tab\n", ""},
		{"pin note", 0, "pinned metadata note\t/ctx/home/7/tool/note\n", ""},
		{"pins", 0, "note\t/ctx/home/7/tool/note\tpinned\ta tab\n", ""},
		{"load fs.list", 0, "loaded fs.list\t/ctx/tool/fs.list\tmetadata\n", ""},
		{"load path", 0, "loaded path\t/ctx/tool/path\tmetadata\nevicted fs.read\t/ctx/tool/fs.read\n", ""},
		{"unload note", 69, "", "tsh: note is pinned\nhint: tsh unpin note\n"},
		{"unload fs.read", 1, "", "tsh: fs.read is not loaded\n"},
		{"unpin note", 0, "unpinned note\t/ctx/home/7/tool/note\nevicted note\t/ctx/home/7/tool/note\n", ""},
		{"unload path fs.list", 0, "unloaded path\t/ctx/tool/path\nunloaded fs.list\t/ctx/tool/fs.list\n", ""},
		{"loads", 0, "", ""},
		{"exit", 0, "", ""},
		{"quit 7", 7, "", ""},
		{"exit x", 2, "", "tsh: exit: \"x\" is no code from 0 to 255\nhint: usage: exit [CODE]\n"},
		{"load", 2, "", "tsh: load: a name is missing\nhint: usage: load TOOL…\n"},
		{"none", 2, "", "tsh: \"none\" is no builtin\n"},
	} {
		if strings.HasPrefix(c.line, "which fs.write") {
			_, err := libctx.ParseTool("../x") // the words are those of the name grammar
			c.errs = strings.Replace(c.errs, `tool name "../x" holds a character that is not allowed`, err.Error(), 1)
		}
		o := sh.Run(strings.Fields(c.line))
		if o.Exit != c.exit || o.Text != c.out || Complaint(o.Errs) != c.errs {
			t.Errorf("%s: exit %d\n%q\n%q\nwant\n%q\n%q", c.line, o.Exit, o.Text, Complaint(o.Errs), c.out, c.errs)
		}
		if o.Content() != c.out+c.errs || o.Ended != (strings.HasPrefix(c.line, "quit") || c.line == "exit") {
			t.Errorf("%s: %+v", c.line, o)
		}
	}
	if o := sh.Run([]string{"help"}); o.Exit != 0 || !strings.Contains(o.Text, "Topics: loading path\n") {
		t.Errorf("%+v", o)
	} else {
		for _, b := range command.Builtins() {
			if !strings.Contains(o.Text, "\n  "+b.Usage) {
				t.Errorf("help does not tell %s", b.Name)
			}
		}
	}
	want := `{"tool":"fs.write","path":"/ctx/tool/fs.write","description":"Write.","code":"perm"}` + "\n"
	if o := sh.Run([]string{"tools", "--json"}); !strings.Contains(o.Text, want) || strings.Count(o.Text, "\n") != len(tools) {
		t.Errorf("%q", o.Text)
	}
}

// On a terminal more is known and explained, and nothing more is done.
func TestTerminalBuiltins(t *testing.T) {
	sh := newShell()
	for _, line := range []string{"type fg", "help fg", "command -v fg"} {
		if o := sh.Run(strings.Fields(line)); o.Exit != 1 {
			t.Errorf("%s: %+v", line, o)
		}
	}
	sh.Terminal, sh.Topics = true, TerminalTopics()
	for line, want := range map[string]string{
		"type fg": "fg is a tsh builtin\n", "command -v jobs": "jobs\n",
		"help bg": "bg [N]\ngo on with a stopped job in the background\n", "help keys": TerminalTopics()["keys"],
	} {
		if o := sh.Run(strings.Fields(line)); o.Exit != 0 || o.Text != want {
			t.Errorf("%s: %+v", line, o)
		}
	}
	for _, b := range command.Terminal() {
		if o := sh.Run([]string{"help"}); !strings.Contains(o.Text, "\n  "+b.Usage) {
			t.Errorf("help does not tell %s", b.Name)
		}
		if o := sh.Run([]string{b.Name}); o.Exit != 2 {
			t.Errorf("%s: %+v", b.Name, o)
		}
	}
}

// Without a place for it nothing is loaded, and without settings that parse
// nothing that depends on them happens.
func TestRunWithout(t *testing.T) {
	sh := newShell()
	sh.Store = nil
	for _, line := range []string{"load fs.read", "pin fs.read", "unload fs.read", "unpin fs.read"} {
		if o := sh.Run(strings.Fields(line)); o.Exit != 69 || o.Text != "" {
			t.Errorf("%s: %+v", line, o)
		}
	}
	for _, line := range []string{"loads", "pins"} {
		if o := sh.Run(strings.Fields(line)); o.Exit != 0 || o.Content() != "" {
			t.Errorf("%s: %+v", line, o)
		}
	}
	sh = newShell()
	sh.Config = func() (settings.Config, error) { return settings.Parse([]byte("x=1\n")) }
	if o := sh.Run([]string{"load", "fs.read"}); o.Exit != 2 || !strings.Contains(o.Content(), "config: line 1") {
		t.Errorf("%+v", o)
	}
	if o := sh.Run([]string{"tools"}); o.Exit != 0 {
		t.Errorf("%+v", o)
	}
	sh = newShell()
	sh.Store = failing{}
	for _, line := range []string{"load fs.read", "loads"} {
		if o := sh.Run(strings.Fields(line)); o.Exit != 1 || o.Text != "" {
			t.Errorf("%s: %+v", line, o)
		}
	}
}

type failing struct{}

func (failing) Load() (Set, error) { return Set{}, errdefs.New(errdefs.IO, "no disk") }
func (failing) Save(Set) error     { return errdefs.New(errdefs.NoSpace, "full") }

func TestSaveFails(t *testing.T) {
	sh := newShell()
	sh.Store = full{}
	if o := sh.Run([]string{"load", "fs.read"}); o.Exit != 1 || o.Text != "" || !strings.Contains(o.Content(), "full") {
		t.Errorf("%+v", o)
	}
}

type full struct{ failing }

func (full) Load() (Set, error) { return Set{}, nil }

func TestContext(t *testing.T) {
	if got := (Set{}).Context(1000); got != "" {
		t.Errorf("%q", got)
	}
	var s Set
	for _, i := range []int{0, 1, 4} {
		s, _, _ = s.Load(entryOf(tools[i]), 64)
	}
	s, _, _ = s.Pin(entryOf(tools[1]), 64)
	want := "fs.list\nList.\nMore.\n  all ([\"boolean\",\"null\"])\n  path (string, required)  where to look\n\n" +
		"fs.read (pinned)\nRead. And more.\n\nnote\na\ttab\n"
	if got := s.Context(libctx.MaxContextText); got != want {
		t.Errorf("%q", got)
	}
	// What does not fit is counted; pinned ones come first, then the newest.
	for i := range 50 {
		s, _, _ = s.Load(entry(fmt.Sprintf("many%02d", i)), 64)
	}
	got := s.Context(600)
	if len(got) > 600 || !strings.Contains(got, "fs.read (pinned)") || !strings.Contains(got, "many49\n") || strings.Contains(got, "fs.list") ||
		!strings.Contains(got, " more tools are loaded: tsh loads]\n") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	for _, max := range []int{0, 1, 50, 100, 5000} {
		if n := len(s.Context(max)); n > max {
			t.Errorf("%d bytes where %d were allowed", n, max)
		}
	}
}

func TestEntryOf(t *testing.T) {
	long := strings.Repeat("é", 5000)
	e := entryOf(Item{Name: "a", Description: long + "\x00\xff", Schema: `{ "title" : "x" }`})
	if len(e.Description) > libctx.MaxLoadedAbout || !strings.HasSuffix(e.Description, "é…") || string(e.Schema) != `{"title":"x"}` {
		t.Errorf("%d bytes, %s", len(e.Description), e.Schema)
	}
	for _, schema := range []string{"", "[]", "{", `{"title":"` + strings.Repeat("x", 17<<10) + `"}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}"} {
		if e := entryOf(Item{Name: "a", Schema: schema}); e.Schema != nil {
			t.Errorf("%.20s is kept", schema)
		}
	}
}

func TestSummary(t *testing.T) {
	for schema, want := range map[string]string{
		"": "", "[1,2": "", `{"type":"object"}`: "", `{"properties":[]}`: "",
		`{"properties":{"x":true,"y":{}},"required":["y"]}`:                           "  x\n  y (required)\n",
		`{"properties":{"x":{"type":"string","description":7}}}`:                      "  x (string)\n",
		`{"properties":{"a\nb":{"type":"string","description":"one\ntwo"}}}`:          "  a b (string)  one two\n",
		`{"properties":{"n":{"type":"integer","description":"N"}},"required":["n"]} `: "  n (integer, required)  N\n",
	} {
		if got := Summary(schema); got != want {
			t.Errorf("%s: %q", schema, got)
		}
	}
}

func TestDirs(t *testing.T) {
	a := t.TempDir()
	file := write(t, a, "tool", 0o755)
	write(t, a, "plain", 0o644)
	write(t, a+"/tool.d", "description", 0o644)
	items, err := Dirs{a}.List()
	if err != nil || len(items) != 1 || items[0].Path != file || items[0].Description != "#!/bin/sh\n" || items[0].Refused != "" {
		t.Errorf("%+v, %v", items, err)
	}
	if i, err := (Dirs{a}).Find("tool"); err != nil || i != items[0] {
		t.Errorf("%+v, %v", i, err)
	}
	for _, name := range []libctx.Tool{"plain", "none", "sh"} {
		if _, err := (Dirs{a}).Find(name); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !slices.IsSortedFunc(items, func(x, y Item) int { return strings.Compare(string(x.Name), string(y.Name)) }) {
		t.Error("not sorted")
	}
}
