package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/builtin"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"golang.org/x/sys/unix"
)

// newTree is a fresh tree below a temporary directory.
func newTree(t *testing.T) paths.Layout {
	t.Helper()
	l := paths.New(paths.Env{UID: os.Geteuid(), Home: t.TempDir(), RuntimeDir: t.TempDir()}, filepath.Join(t.TempDir(), "tree"))
	if _, err := Init(l, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

// script is a script that could be an agent.
func script(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

func want(t *testing.T, err error, kind errdefs.Kind, part string) {
	t.Helper()
	if errdefs.KindOf(err) != kind || err != nil && !strings.Contains(err.Error(), part) {
		t.Errorf("error %v (%s), want %s with %q", err, errdefs.KindOf(err), kind, part)
	}
}

func TestInitMakesATreeOnce(t *testing.T) {
	l := paths.New(paths.Env{UID: os.Geteuid(), Home: t.TempDir()}, filepath.Join(t.TempDir(), "a b", "tree"))
	old := unix.Umask(0o077)
	made, err := Init(l, map[string]string{"ctx": "/opt/ctx"})
	unix.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	if !paths.IsTree(l.Root) {
		t.Error("the result is not a tree")
	}
	for _, rel := range []string{"agent/", "tool/fs.read", "bin/ctx", "status"} {
		if !slices.Contains(made, rel) {
			t.Errorf("made %q lacks %s", made, rel)
		}
	}
	for rel, mode := range map[string]fs.FileMode{
		"": 0o755, "agent": 0o755, "tool/fs.read": 0o755, "tool/fs.read.d": 0o755, "tool/fs.read.d/effect": 0o644, ".lock": 0o700,
	} {
		if st, err := os.Lstat(filepath.Join(l.Root, rel)); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%q: mode %v, %v, want %v", rel, st.Mode(), err, mode)
		}
	}
	if st, err := os.Lstat(l.Home(uint32(os.Geteuid()))); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("home: %v, %v", st, err)
	}
	if again, err := Init(l, map[string]string{"ctx": "/opt/ctx"}); err != nil || len(again) > 0 {
		t.Errorf("second Init made %q, %v", again, err)
	}
	for _, tool := range builtin.Tools() {
		for name := range tool.Files() {
			if name != "" && !slices.Contains(control.ToolFiles(), name) {
				t.Errorf("tool %s has a file %s without a grammar", tool.Name, name)
			}
		}
	}
}

func TestInitRepairsToolsAndKeepsTheRest(t *testing.T) {
	l := newTree(t)
	mine := filepath.Join(l.Tools(), "mine")
	broken := filepath.Join(l.Tools(), "fs.read.d/effect")
	link := filepath.Join(l.Tools(), "fs.list")
	victim := filepath.Join(t.TempDir(), "victim")
	for name, text := range map[string]string{mine: "#!/bin/sh\n", broken: "pure\n", victim: "keep"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(link), os.Symlink(victim, link), os.Chmod(filepath.Join(l.Tools(), "fs.stat"), 0o777)); err != nil {
		t.Fatal(err)
	}
	made, err := Init(l, map[string]string{"tsh": "/opt/tsh"})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(made)
	if got := strings.Join(made, " "); got != "bin/tsh tool/fs.list tool/fs.read.d/effect tool/fs.stat" {
		t.Errorf("repaired %q", got)
	}
	if b, _ := os.ReadFile(victim); string(b) != "keep" {
		t.Errorf("the target of a link was written: %q", b)
	}
	if b, _ := os.ReadFile(mine); string(b) != "#!/bin/sh\n" {
		t.Errorf("a tool of the user was changed: %q", b)
	}
	if made, err := Init(l, map[string]string{"tsh": "/usr/bin/tsh"}); err != nil || len(made) != 1 {
		t.Errorf("a link that leads elsewhere: made %q, %v", made, err)
	}
}

// A tool that is a program of the host comes with the program, and stays without.
func TestProgramsOfTheHost(t *testing.T) {
	l := newTree(t)
	for _, tool := range builtin.Tools() {
		_, err := os.Lstat(filepath.Join(l.Tools(), string(tool.Name)))
		if (err == nil) != program.Offered(tool.Name) {
			t.Errorf("%s: %v", tool.Name, err)
		}
	}
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := maker{root: root}
	none := func(libctx.Tool) bool { return false }
	if !m.wants("fs.read", none) {
		t.Error("what is there goes with its program")
	}
	if err := os.Remove(filepath.Join(l.Tools(), "fs.read")); err != nil {
		t.Fatal(err)
	}
	if m.wants("fs.read", none) || !m.wants("fs.read", func(libctx.Tool) bool { return true }) {
		t.Error("what is not there comes with its program, and with nothing else")
	}
}

func TestInitRefusesOtherDirectories(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Init(paths.New(paths.Env{UID: os.Geteuid()}, full), nil)
	want(t, err, errdefs.Exists, "not empty and not a tree")

	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = Init(paths.New(paths.Env{UID: os.Geteuid()}, open), nil)
	want(t, err, errdefs.Denied, "others may write it")

	file := filepath.Join(full, "thesis.tex")
	_, err = Init(paths.New(paths.Env{UID: os.Geteuid()}, file), nil)
	want(t, err, errdefs.Exists, "not a directory")

	// A link where the tools' directory should be leads nothing elsewhere.
	l := newTree(t)
	outside := t.TempDir()
	if err := errors.Join(os.RemoveAll(l.Tools()), os.Symlink(outside, l.Tools())); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(l, nil); err == nil {
		t.Error("Init followed a link")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("Init wrote through a link: %v", left)
	}
}

func TestNewAgentWorks(t *testing.T) {
	l := newTree(t)
	exec := script(t)
	m, err := mount.ParseFlag("/srv/data:/data:ro")
	if err != nil {
		t.Fatal(err)
	}
	spec := AgentSpec{
		Name: "coder", Owner: asuser.Self(), Exec: exec,
		Tools: []libctx.Tool{"fs.read", "tsh"}, Native: []libctx.Tool{"shell.exec"}, Mounts: []mount.Line{m},
		Allow: []string{"network:default connect"}, System: []byte("be brief"),
	}
	if err := NewAgent(l, spec); err != nil {
		t.Fatal(err)
	}
	v, err := view.Load(l, "coder")
	if err != nil {
		t.Fatal(err)
	}
	if !v.Executable || v.Perm.String() != "r-x" || !v.Network || v.Subject != "coder_t" {
		t.Errorf("agent %+v", v)
	}
	for _, tool := range []string{"tsh", "fs.read", "shell.exec"} {
		if !v.Policy.Allows("coder_t", "tool", tool, "execute") {
			t.Errorf("policy lacks %s", tool)
		}
	}
	if !slices.Equal(v.Declared, []libctx.Tool{"fs.read", "shell.exec"}) {
		t.Errorf("declared %q", v.Declared)
	}
	if text, err := GetControl(l, "coder", "system.md"); err != nil || string(text) != "be brief" {
		t.Errorf("system.md %q, %v", text, err)
	}
	list, err := Controls(l, "coder")
	if err != nil || len(list) < 16 {
		t.Errorf("%d controls, %v", len(list), err)
	}
	for _, c := range list {
		if canonical, err := control.CanonicalAgent(c.Name, c.Text); err != nil || string(canonical) != string(c.Text) {
			t.Errorf("%s: %q is not canonical: %v", c.Name, c.Text, err)
		}
	}
	if st, err := os.Lstat(l.Agent("coder")); err != nil || st.Mode() != 0o755 {
		t.Errorf("entry %v, %v", st, err)
	}
	if st, err := os.Lstat(l.Sessions(v.Owner.UID, "coder")); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("sessions %v, %v", st, err)
	}
	want(t, NewAgent(l, spec), errdefs.Exists, "there already")
	entries, _ := os.ReadDir(l.Agents())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
	if agents, err := ListAgents(l); err != nil || !slices.Equal(agents, []libctx.Agent{"coder"}) {
		t.Errorf("agents %q, %v", agents, err)
	}
}

func TestModelAgent(t *testing.T) {
	l := newTree(t)
	spec := AgentSpec{
		Name: "talk", Owner: asuser.Self(), Model: "debug/echo",
		Tools: []libctx.Tool{"fs.read"}, Native: []libctx.Tool{"fs.list"},
	}
	if err := NewAgent(l, spec); err != nil {
		t.Fatal(err)
	}
	v, err := view.Load(l, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if v.Executable || v.Model != "debug/echo" || !slices.Equal(v.Declared, []libctx.Tool{"fs.list"}) {
		t.Errorf("agent %+v", v)
	}
	if !v.Policy.Allows("talk_t", "model", "debug/echo", "use") || v.Network {
		t.Errorf("policy %s", v.Policy.Text())
	}
	text, err := os.ReadFile(l.Agent("talk"))
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.HasPrefix(string(text), "#!/bin/sh\n") {
		t.Errorf("entry %q, %v", text, err)
	}
}

func TestNewAgentRefusals(t *testing.T) {
	l := newTree(t)
	exec := script(t)
	plain := filepath.Join(t.TempDir(), "plain")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := errors.Join(os.WriteFile(plain, []byte("print('hi')\n"), 0o755), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	self := asuser.Self()
	for _, c := range []struct {
		name string
		spec AgentSpec
		kind errdefs.Kind
		part string
	}{
		{"no name", AgentSpec{Owner: self, Exec: exec}, errdefs.Invalid, "is empty"},
		{"path", AgentSpec{Name: "../x", Owner: self, Exec: exec}, errdefs.Invalid, "agent name"},
		{"long", AgentSpec{Name: libctx.Agent(strings.Repeat("a", 63)), Owner: self, Exec: exec}, errdefs.Invalid, "longer"},
		{"socket", AgentSpec{Name: "x.sock", Owner: self, Exec: exec}, errdefs.Invalid, ".sock"},
		{"nothing", AgentSpec{Name: "a", Owner: self}, errdefs.Invalid, "neither"},
		{"both", AgentSpec{Name: "a", Owner: self, Exec: exec, Model: "m"}, errdefs.Invalid, "both"},
		{"absent", AgentSpec{Name: "a", Owner: self, Exec: exec + "x"}, errdefs.NotFound, "no such file"},
		{"text", AgentSpec{Name: "a", Owner: self, Exec: plain}, errdefs.Invalid, "neither an executable nor a script"},
		{"fifo", AgentSpec{Name: "a", Owner: self, Exec: fifo}, errdefs.Invalid, "not a regular file"},
		{"tool", AgentSpec{Name: "a", Owner: self, Exec: exec, Tools: []libctx.Tool{"nope"}}, errdefs.NotFound, `no tool "nope"`},
		{"tool path", AgentSpec{Name: "a", Owner: self, Exec: exec, Tools: []libctx.Tool{"../agent"}}, errdefs.Invalid, "tool name"},
		{"policy", AgentSpec{Name: "a", Owner: self, Exec: exec, Allow: []string{"tool:x fly"}}, errdefs.Invalid, "fly"},
		{"policy lines", AgentSpec{Name: "a", Owner: self, Exec: exec, Allow: []string{"tool:x execute\nallow b_t tool:y execute"}}, errdefs.Invalid, ""},
		{"mount", AgentSpec{Name: "a", Owner: self, Exec: exec, Mounts: []mount.Line{{Source: "/x", Target: "/usr/x"}}}, errdefs.Invalid, "/usr"},
	} {
		err := NewAgent(l, c.spec)
		if errdefs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v (%s), want %s with %q", c.name, err, errdefs.KindOf(err), c.kind, c.part)
		}
	}
	if left, _ := os.ReadDir(l.Agents()); len(left) > 0 {
		t.Errorf("refused agents left %v", left)
	}
}

func TestTwoWantOneName(t *testing.T) {
	l := newTree(t)
	exec := script(t)
	results := make(chan error)
	for range 8 {
		go func() { results <- NewAgent(l, AgentSpec{Name: "one", Owner: asuser.Self(), Exec: exec}) }()
	}
	won := 0
	for range 8 {
		if err := <-results; err == nil {
			won++
		} else {
			want(t, err, errdefs.Exists, "")
		}
	}
	if won != 1 {
		t.Errorf("%d made the same agent", won)
	}
	if _, err := view.Load(l, "one"); err != nil {
		t.Error(err)
	}
}

func TestSetControl(t *testing.T) {
	l := newTree(t)
	if err := NewAgent(l, AgentSpec{Name: "a", Owner: asuser.Self(), Exec: script(t)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, text string
		kind       errdefs.Kind
		stored     string
	}{
		{"perm", "r-x", "", "r-x\n"},
		{"perm", "r-x\n", "", "r-x\n"},
		{"perm", "777", errdefs.Invalid, "r-x\n"},
		{"perm", "r-x\r\n", errdefs.Invalid, "r-x\n"},
		{"perm", "r-x\nrwx\n", errdefs.Invalid, "r-x\n"},
		{"perm", "r\x00x", errdefs.Invalid, "r-x\n"},
		{"timeout", "90s", "", "1m30s\n"},
		{"system.md", "no final newline", "", "no final newline"},
		{"tools", "", "", ""},
		{"pid", "1", errdefs.Invalid, ""},
		{"nonsense", "1", errdefs.Invalid, ""},
		{"../../status", "1", errdefs.Invalid, ""},
		{"system.md", strings.Repeat("x", libctx.MaxControlFile+1), errdefs.TooBig, "no final newline"},
	} {
		err := SetControl(l, "a", c.file, []byte(c.text))
		if errdefs.KindOf(err) != c.kind {
			t.Errorf("set %s %.20q: %v, want %s", c.file, c.text, err, c.kind)
		}
		if text, err := GetControl(l, "a", c.file); err == nil && string(text) != c.stored {
			t.Errorf("after set %s %.20q: %.40q, want %q", c.file, c.text, text, c.stored)
		}
	}
	want(t, SetControl(l, "none", "perm", []byte("r--")), errdefs.NotFound, `no agent "none"`)
}

func TestRemoveAgent(t *testing.T) {
	l := newTree(t)
	uid := uint32(os.Geteuid())
	spec := AgentSpec{Name: "a", Owner: asuser.Self(), Exec: script(t)}
	for _, purge := range []bool{false, true} {
		if err := NewAgent(l, spec); err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(l.Sessions(uid, "a"), "kept")
		if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.Symlink("/nowhere", l.AgentLink("a")), os.MkdirAll(l.View("a"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := RemoveAgent(l, "a", purge); err != nil {
			t.Fatal(err)
		}
		if left, _ := os.ReadDir(l.Agents()); len(left) > 0 {
			t.Errorf("left %v", left)
		}
		if _, err := os.Lstat(l.View("a")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("views: %v", err)
		}
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) != purge {
			t.Errorf("purge %v: sessions %v", purge, err)
		}
	}
	want(t, RemoveAgent(l, "a", false), errdefs.NotFound, "no agent")
	want(t, RemoveAgent(l, "a", true), errdefs.NotFound, "no agent")
}

// An agent's control directory, or the directory of all agents, is replaced by a
// link: nothing is read or written through it.
func TestLinksAreNotFollowed(t *testing.T) {
	victim := t.TempDir()
	secret := filepath.Join(victim, "perm")
	if err := os.WriteFile(secret, []byte("rwx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(l paths.Layout, place string) {
		t.Helper()
		if err := SetControl(l, "a", "perm", []byte("---")); err == nil {
			t.Errorf("%s: set succeeded", place)
		}
		if _, err := GetControl(l, "a", "perm"); err == nil {
			t.Errorf("%s: get succeeded", place)
		}
		if _, err := Controls(l, "a"); err == nil {
			t.Errorf("%s: show succeeded", place)
		}
		if err := NewAgent(l, AgentSpec{Name: "b", Owner: asuser.Self(), Exec: script(t)}); err == nil && place == "agent" {
			t.Errorf("%s: new succeeded", place)
		}
		_ = RemoveAgent(l, "a", false)
		if b, err := os.ReadFile(secret); err != nil || string(b) != "rwx\n" {
			t.Errorf("%s: the target of the link is %q, %v", place, b, err)
		}
		if list, _ := os.ReadDir(victim); len(list) != 1 {
			t.Errorf("%s: the target of the link holds %v", place, list)
		}
	}

	l := newTree(t)
	if err := NewAgent(l, AgentSpec{Name: "a", Owner: asuser.Self(), Exec: script(t)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(l.Control("a")), os.Symlink(victim, l.Control("a"))); err != nil {
		t.Fatal(err)
	}
	check(l, "agent/a.d")

	l = newTree(t)
	if err := errors.Join(os.RemoveAll(l.Agents()), os.Symlink(victim, l.Agents())); err != nil {
		t.Fatal(err)
	}
	check(l, "agent")

	// One control is a link.
	l = newTree(t)
	if err := NewAgent(l, AgentSpec{Name: "a", Owner: asuser.Self(), Exec: script(t)}); err != nil {
		t.Fatal(err)
	}
	perm := filepath.Join(l.Control("a"), "perm")
	if err := errors.Join(os.Remove(perm), os.Symlink(secret, perm)); err != nil {
		t.Fatal(err)
	}
	if text, err := GetControl(l, "a", "perm"); err == nil {
		t.Errorf("read %q through a link", text)
	}
	if err := SetControl(l, "a", "perm", []byte("r--")); err == nil {
		t.Error("a link was replaced")
	}
	if b, _ := os.ReadFile(secret); string(b) != "rwx\n" {
		t.Errorf("written through a link: %q", b)
	}
}

// Root changes a user's tree as that user, and makes agents for others in its
// own; an ordinary user is told whose tree it is.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		l := paths.New(paths.Env{UID: os.Geteuid()}, "/")
		want(t, SetControl(l, "a", "perm", []byte("r--")), errdefs.Denied, "belongs to uid 0")
		return
	}
	const uid = 60001
	top := t.TempDir()
	if err := errors.Join(os.Chmod(top, 0o755), os.Chmod(filepath.Dir(top), 0o755)); err != nil {
		t.Fatal(err)
	}
	other := asuser.Identity{UID: uid, GID: uid}

	// Root's tree, the agent of another.
	l := paths.New(paths.Env{}, filepath.Join(top, "system"))
	if _, err := Init(l, nil); err != nil {
		t.Fatal(err)
	}
	if err := NewAgent(l, AgentSpec{Name: "theirs", Owner: other, Exec: script(t), Tools: []libctx.Tool{"fs.read"}}); err != nil {
		t.Fatal(err)
	}
	v, err := view.Load(l, "theirs")
	if err != nil || v.Owner.UID != uid {
		t.Fatalf("%+v, %v", v, err)
	}
	owned := func(path string, uid uint32) {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Uid != uid {
			t.Errorf("%s belongs to %d, %v; want %d", path, st.Uid, err, uid)
		}
	}
	owned(l.Agent("theirs"), 0)
	owned(filepath.Join(l.Control("theirs"), "perm"), 0)
	owned(l.Home(uid), uid)
	owned(l.Sessions(uid, "theirs"), uid)
	if got, err := Owner(l, "theirs"); err != nil || got != uid {
		t.Errorf("owner %d, %v", got, err)
	}
	if err := RemoveAgent(l, "theirs", true); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(l.AgentHome(uid, "theirs")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("purged home: %v", err)
	}

	// A user's tree, changed by root.
	l = paths.New(paths.Env{}, filepath.Join(top, "user"))
	if _, err := Init(l, nil); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(l.Root, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, uid, uid))
	}); err != nil {
		t.Fatal(err)
	}
	want(t, NewAgent(l, AgentSpec{Name: "mine", Owner: asuser.Self(), Exec: script(t)}), errdefs.Denied, "can not hold")
	if err := NewAgent(l, AgentSpec{Name: "mine", Owner: other, Exec: script(t)}); err != nil {
		t.Fatal(err)
	}
	if err := SetControl(l, "mine", "perm", []byte("rwx")); err != nil {
		t.Fatal(err)
	}
	owned(l.Agent("mine"), uid)
	owned(filepath.Join(l.Control("mine"), "perm"), uid)
	owned(l.Sessions(uid, "mine"), uid)

	// The user leads the tree's parts elsewhere: root follows nowhere.
	prize := filepath.Join(top, "prize")
	if err := errors.Join(os.Mkdir(prize, 0o700), os.RemoveAll(l.AgentHome(uid, "mine")), os.RemoveAll(filepath.Join(l.Home(uid), "agent")),
		os.Symlink(prize, filepath.Join(l.Home(uid), "agent"))); err != nil {
		t.Fatal(err)
	}
	if err := RemoveAgent(l, "mine", false); err != nil {
		t.Fatal(err)
	}
	if err := NewAgent(l, AgentSpec{Name: "mine", Owner: other, Exec: script(t)}); err == nil {
		t.Error("the home was made through a link")
	}
	if left, _ := os.ReadDir(prize); len(left) > 0 {
		t.Errorf("made through a link: %v", left)
	}
}
