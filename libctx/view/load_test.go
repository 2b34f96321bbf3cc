package view

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/policy"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

func uidString(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func TestDefaults(t *testing.T) {
	w := newWorld(t)
	w.control("bare", map[string]string{"abi": libctx.ABI + "\n"})
	a, err := Load(w.Layout, "bare")
	if err != nil {
		t.Fatal(err)
	}
	self := asuser.Self()
	want := &Agent{
		Name: "bare", Subject: "bare_t", Owner: self, User: a.User, Executable: true,
		Path:    []string{"/ctx/tool", "/ctx/home/" + uid() + "/tool"},
		Mounts:  mount.Default(self.UID, "bare"),
		Cwd:     "/workspace",
		Timeout: 2 * time.Minute, ResultBytes: 50 << 10, Approval: "auto", Effects: "unsafe-host", Life: "owned",
		Effort: "auto",
	}
	if diff := cmp.Diff(want, a, cmpopts.IgnoreUnexported(Agent{})); diff != "" {
		t.Error(diff)
	}
	if a.Policy.Allows("bare_t", "tool", "tsh", "execute") || a.Perm != 0 {
		t.Error("an agent without policy and perm may do something")
	}
}

func TestEveryControl(t *testing.T) {
	w := newWorld(t)
	w.control("coder", map[string]string{
		"label": "user_u:agent_r:editor_t:s0\n", "perm": "rw-\n", "tools": "calc\nfs.read\n",
		"policy": "allow editor_t network:default connect\n",
		"path":   "/ctx/tool\n/ctx/shared/team/tool/x\n", "env": "A=1\nPATH=/evil\nCTX_ROOT=/evil\nB=x y\n",
		"cwd": "/workspace/src\n", "protect": ".vscode\n", "timeout": "5s\n", "result_bytes": "1000\n",
		"approval": "ask\n", "effects": "controlled\n", "parent": "agent:boss\n", "life": "temp\n",
		"mount": "/ctx\t/ctx\tro\tnoexec\n", "root": "/ctx\n", "uid": uid() + "\n", "model": "debug/echo\n",
		"window": "8000\n", "effort": "high\n",
	})
	a := w.load()
	p, err := policy.Parse([]byte("allow editor_t network:default connect\n"))
	w.ok(err)
	want := &Agent{
		Name: "coder", Subject: "editor_t", Owner: asuser.Self(), User: a.User, Executable: true, Model: "debug/echo",
		Perm: control.Read | control.Write, Policy: p, Declared: []libctx.Tool{"calc", "fs.read"},
		Path:   []string{"/ctx/tool", "/ctx/shared/team/tool/x"},
		Mounts: mount.Table{{Source: "/ctx", Target: "/ctx", ReadOnly: true, Options: []string{"noexec"}}},
		Env:    []string{"A=1", "PATH=/evil", "CTX_ROOT=/evil", "B=x y"}, Cwd: "/workspace/src", Protect: []string{".vscode"},
		Timeout: 5 * time.Second, ResultBytes: 1000, Approval: "ask", Effects: "controlled",
		Parent: "agent:boss", Life: "temp", Network: true, Window: 8000, Effort: "high",
	}
	if diff := cmp.Diff(want, a, cmpopts.IgnoreUnexported(Agent{})); diff != "" {
		t.Error(diff)
	}
}

// A model is told what system.md and prompt.template.md say, byte for byte. For
// an executable agent nobody reads them, so they can not refuse it.
func TestPromptTexts(t *testing.T) {
	w := newWorld(t)
	w.control("m", map[string]string{"model": "main\n", "system.md": "You\r\ncode.", "prompt.template.md": "{{time}}\n\n"})
	a, err := Load(w.Layout, "m")
	w.ok(err)
	if a.Model != "main" || a.Window != 0 || a.Effort != "auto" || a.System != "You\r\ncode." || a.Template != "{{time}}\n\n" {
		t.Errorf("%+v", a)
	}
	w.control("coder", map[string]string{"system.md": "\x00"})
	if a := w.load(); a.System != "" {
		t.Errorf("%q", a.System)
	}
	w.control("m", map[string]string{"system.md": "\x00"})
	if _, err := Load(w.Layout, "m"); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "agent/m.d/system.md") {
		t.Error(err)
	}
}

func TestEnviron(t *testing.T) {
	w := newWorld(t)
	w.control("coder", map[string]string{"env": "A=1\nPATH=/evil\nCTX_ROOT=/evil\nCTX_STEP=9\nHOME=/evil\nB=x y\n"})
	t.Setenv("SECRET_TOKEN", "leak")
	a := w.load()
	got := a.Environ("CTX_SESSION=default", "CTX_STEP=0")
	want := []string{
		"CTX_ROOT=/ctx", "CTX_HOME=/ctx/home/" + uid(), "CTX_AGENT=coder", "CTX_AGENT_SUBJECT=coder_t",
		"CTX_PATH=/ctx/tool:/ctx/home/" + uid() + "/tool", "HOME=/home/agent", "USER=" + a.User, "LOGNAME=" + a.User,
		"SHELL=" + shell(), "TERM=dumb", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin",
		"CTX_SESSION=default", "CTX_STEP=0", "A=1", "B=x y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTerminalEnviron: a terminal has the eleven variables of its contract and
// nothing else, whatever the control and the caller's environment say.
func TestTerminalEnviron(t *testing.T) {
	w := newWorld(t)
	w.control("coder", map[string]string{"env": "A=1\nPATH=/evil\nTERM=evil\nLANG=evil\n"})
	t.Setenv("SECRET_TOKEN", "leak")
	t.Setenv("TERM", "dumb")
	a := w.load()
	want := "CTX_ROOT=/ctx\nCTX_HOME=/ctx/home/" + uid() + "\nCTX_AGENT=coder\nCTX_AGENT_SUBJECT=coder_t\n" +
		"CTX_PATH=/ctx/tool:/ctx/home/" + uid() + "/tool\nHOME=/home/agent\nUSER=" + a.User + "\nLOGNAME=" + a.User + "\n" +
		"SHELL=" + shell() + "\nTERM=xterm-256color\nLANG=C.UTF-8"
	if got := strings.Join(a.TerminalEnviron(), "\n"); got != want {
		t.Errorf("%s", cmp.Diff(want, got))
	}
}

// TestGrammar: a file that does not parse refuses the agent by its name and
// line; so does a value this version has no use for.
func TestGrammar(t *testing.T) {
	for file, text := range map[string]string{
		"abi": "sdk-envelope-v2\n", "perm": "rwz\n", "policy": "allow coder_t tool:a execute\n# comment\n",
		"tools": "tsh\n", "path": "tool\n", "mount": "/ctx /ctx ro -\n", "env": "novalue\n", "cwd": "src\n",
		"protect": "../x\n", "timeout": "2h\n", "result_bytes": "0\n", "approval": "never\n", "effects": "all\n",
		"parent": "boss\n", "life": "detached\n", "label": "coder_t\n", "model": "a/b/c\n",
		"window": "0\n", "effort": "max\n",
		"owner": "me\n", "gid": "-1\n", "groups": "1\n1\n", "uid": "x\n", "root": "/srv\n",
	} {
		t.Run(file, func(t *testing.T) {
			w := newWorld(t)
			w.control("coder", map[string]string{file: text})
			w.refuses(errdefs.Invalid, "agent/coder.d/"+file)
		})
	}
	for name, text := range map[string]string{
		"CRLF": "r--\r\n", "no LF": "r--", "two lines": "r--\nr--\n", "NUL": "r--\x00\n", "empty": "",
		"blank": "\n", "not UTF-8": "\xff\n",
	} {
		t.Run("perm with "+name, func(t *testing.T) {
			w := newWorld(t)
			w.control("coder", map[string]string{"perm": text})
			w.refuses(errdefs.Invalid, "agent/coder.d/perm")
		})
	}
	t.Run("uid of another", func(t *testing.T) {
		w := newWorld(t)
		w.control("coder", map[string]string{"uid": "12345\n"})
		w.refuses(errdefs.Invalid, "reserved")
	})
	for _, dir := range []string{"/usr/bin", "/ctx", "/ctx/agent", "/ctx/toolbox", "/ctx/home/12345/tool", "/ctx/shared/tool", "/workspace/tool"} {
		t.Run("path "+dir, func(t *testing.T) {
			w := newWorld(t)
			w.control("coder", map[string]string{"path": "/ctx/tool\n" + dir + "\n"})
			w.refuses(errdefs.Invalid, "agent/coder.d/path")
		})
	}
	t.Run("neither abi nor model", func(t *testing.T) {
		w := newWorld(t)
		w.ok(os.Remove(w.path("agent/coder.d/abi")))
		w.refuses(errdefs.Invalid, "neither abi nor model")
	})
	t.Run("too long", func(t *testing.T) {
		w := newWorld(t)
		w.control("coder", map[string]string{"env": strings.Repeat("x", libctx.MaxControlFile+1)})
		w.refuses(errdefs.TooBig, "agent/coder.d/env")
	})
}

func TestNoSuchAgent(t *testing.T) {
	w := newWorld(t)
	if _, err := Load(w.Layout, "nobody"); !errdefs.Is(err, errdefs.NotFound) || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("Load: %v", err)
	}
}

// TestDistrust: what links, is loose or is no file refuses the agent, whatever
// the control.
func TestDistrust(t *testing.T) {
	for name, tt := range map[string]struct {
		attack func(w *world)
		names  string
	}{
		"the directory is a link": {func(w *world) {
			w.ok(os.Rename(w.path("agent/coder.d"), w.path("elsewhere")))
			w.ok(os.Symlink("../elsewhere", w.path("agent/coder.d")))
		}, "agent/coder.d: is a link"},
		"a directory above is a link": {func(w *world) {
			w.ok(os.Rename(w.path("agent"), w.path("elsewhere")))
			w.ok(os.Symlink("elsewhere", w.path("agent")))
		}, "agent/coder.d"},
		"the directory is a file": {func(w *world) {
			w.ok(os.RemoveAll(w.path("agent/coder.d")))
			w.write("agent/coder.d", "", 0o644)
		}, "agent/coder.d: is a regular file"},
		"the directory is loose":        {func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d"), 0o777)) }, "agent/coder.d: can be written"},
		"the directory is group's":      {func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d"), 0o775)) }, "agent/coder.d: can be written"},
		"a control file is loose":       {func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d/perm"), 0o666)) }, "agent/coder.d/perm: can be written"},
		"a control file is group's":     {func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d/policy"), 0o664)) }, "agent/coder.d/policy"},
		"a prompt is loose":             {func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d/system.md"), 0o666)) }, "agent/coder.d/system.md"},
		"a control file is a link":      {func(w *world) { w.relink("agent/coder.d/policy") }, "agent/coder.d/policy: is a link"},
		"a prompt is a link":            {func(w *world) { w.relink("agent/coder.d/system.md") }, "agent/coder.d/system.md: is a link"},
		"a control file dangles":        {func(w *world) { w.ok(os.Symlink("nowhere", w.path("agent/coder.d/groups"))) }, "agent/coder.d/groups: is a link"},
		"a control file is a FIFO":      {func(w *world) { w.ok(unix.Mkfifo(w.path("agent/coder.d/cwd"), 0o600)) }, "agent/coder.d/cwd: is a FIFO"},
		"a control file is a directory": {func(w *world) { w.ok(os.Mkdir(w.path("agent/coder.d/env"), 0o755)) }, "agent/coder.d/env: is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.attack(w)
			w.refuses(errdefs.Denied, tt.names)
		})
	}
}

// relink moves a file away and leaves a link to it.
func (w *world) relink(rel string) {
	w.ok(os.Rename(w.path(rel), w.path("moved")))
	w.ok(os.Symlink(w.path("moved"), w.path(rel)))
}

// TestSwap: a control directory that turns into a link and back while it is
// loaded is read as it was or refused, and never read through the link.
func TestSwap(t *testing.T) {
	w := newWorld(t)
	w.ok(os.Rename(w.path("agent/coder.d"), w.path("real")))
	w.write("decoy/perm", "rwx\n", 0o644)
	w.write("decoy/abi", libctx.ABI+"\n", 0o644)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(w.path("real"), w.path("agent/coder.d"))
			os.Rename(w.path("agent/coder.d"), w.path("real"))
			os.Symlink("../decoy", w.path("agent/coder.d"))
			os.Remove(w.path("agent/coder.d"))
		}
	}()
	for range 500 {
		if a, err := Load(w.Layout, "coder"); err == nil && a.Perm != control.Read {
			t.Fatalf("perm %s came through the link", a.Perm)
		}
	}
	close(stop)
	<-done
}

// TestIdentity is about who may say as whom an agent runs; another user is
// needed for it, so root runs the cases and an ordinary user the one it can.
func TestIdentity(t *testing.T) {
	if !isRoot() {
		w := newWorld(t)
		w.control("coder", map[string]string{"owner": "0\n"})
		w.refuses(errdefs.Denied, "agent/coder.d/owner")
		return
	}
	for name, tt := range map[string]struct {
		dir    int // owner of the directory and its files
		says   map[string]string
		want   asuser.Identity
		refuse string
	}{
		"root names another":        {0, map[string]string{"owner": "60001\n"}, asuser.Identity{UID: 60001, GID: 60001}, ""},
		"root names groups":         {0, map[string]string{"owner": "60001\n", "gid": "60005\n", "groups": "60006\n60007\n"}, asuser.Identity{UID: 60001, GID: 60005, Groups: []uint32{60006, 60007}}, ""},
		"root says nothing":         {0, map[string]string{}, asuser.Self(), ""},
		"a user is itself":          {stranger, map[string]string{"owner": "60001\n"}, asuser.Identity{UID: 60001, GID: 60001}, ""},
		"a user says nothing":       {stranger, map[string]string{}, asuser.Identity{UID: 60001, GID: 60001}, ""},
		"a user names its group":    {stranger, map[string]string{"gid": "60001\n", "groups": "60001\n"}, asuser.Identity{UID: 60001, GID: 60001}, ""},
		"a user claims root":        {stranger, map[string]string{"owner": "0\n"}, asuser.Identity{}, "agent/coder.d/owner"},
		"a user claims another":     {stranger, map[string]string{"owner": "60002\n"}, asuser.Identity{}, "agent/coder.d/owner"},
		"a user claims root's gid":  {stranger, map[string]string{"gid": "0\n"}, asuser.Identity{}, "agent/coder.d/gid"},
		"a user claims root's list": {stranger, map[string]string{"groups": "60001\n0\n"}, asuser.Identity{}, "agent/coder.d/groups"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok(os.Remove(w.path("agent/coder.d/owner")))
			w.control("coder", tt.says)
			w.give("agent/coder.d", tt.dir)
			if tt.refuse != "" {
				w.refuses(errdefs.Denied, tt.refuse)
				return
			}
			if diff := cmp.Diff(tt.want, w.load().Owner); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a file of another in a user's directory", func(t *testing.T) {
		w := newWorld(t)
		w.control("coder", map[string]string{"owner": "60001\n"})
		w.give("agent/coder.d", stranger)
		w.give("agent/coder.d/policy", friend)
		w.refuses(errdefs.Denied, "agent/coder.d/policy: belongs to uid 60002")
	})
	t.Run("a file of the owner in root's directory", func(t *testing.T) {
		w := newWorld(t)
		w.control("coder", map[string]string{"owner": "60001\n", "groups": "0\n"})
		w.give("agent/coder.d/groups", stranger)
		w.refuses(errdefs.Denied, "agent/coder.d/groups: belongs to uid 60001")
	})
	t.Run("root reads for a user what the user can read", func(t *testing.T) {
		w := newWorld(t)
		w.control("coder", map[string]string{"owner": "60001\n"})
		w.give("agent/coder.d", stranger)
		// As a hard link to a file of root would be.
		w.write("agent/coder.d/env", "A=1\n", 0o600)
		w.refuses(errdefs.Denied, "agent/coder.d/env")
	})
	t.Run("an ordinary user and root's tree", func(t *testing.T) {
		w := newWorld(t)
		w.System = false
		w.control("coder", map[string]string{"owner": "60001\n"})
		w.refuses(errdefs.Denied, "not to you")
	})
}

func TestExecutable(t *testing.T) {
	for name, tt := range map[string]struct {
		attack func(w *world)
		kind   errdefs.Kind
	}{
		"a link":         {func(w *world) { w.relink("agent/coder") }, errdefs.Denied},
		"loose":          {func(w *world) { w.ok(os.Chmod(w.path("agent/coder"), 0o777)) }, errdefs.Denied},
		"not executable": {func(w *world) { w.ok(os.Chmod(w.path("agent/coder"), 0o644)) }, errdefs.Denied},
		"a directory": {func(w *world) {
			w.ok(os.Remove(w.path("agent/coder")))
			w.ok(os.Mkdir(w.path("agent/coder"), 0o755))
		}, errdefs.Denied},
		"missing": {func(w *world) { w.ok(os.Remove(w.path("agent/coder"))) }, errdefs.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.load()
			f, err := a.OpenExecutable(w.Layout)
			w.ok(err)
			w.ok(f.Close())
			tt.attack(w)
			if _, err := a.OpenExecutable(w.Layout); !errdefs.Is(err, tt.kind) || !strings.Contains(err.Error(), "agent/coder") {
				t.Errorf("OpenExecutable: %v, want %s", err, tt.kind)
			}
			if _, err := a.Prepare(w.Layout, true); !errdefs.Is(err, tt.kind) {
				t.Errorf("Prepare: %v, want %s", err, tt.kind)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	w := newWorld(b)
	w.control("coder", map[string]string{"path": "/ctx/tool\n", "env": "A=1\n", "cwd": "/workspace\n", "timeout": "5s\n", "label": "u:r:coder_t:s0\n"})
	for b.Loop() {
		w.load()
	}
}
