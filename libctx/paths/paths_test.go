package paths_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"pgregory.net/rapid"
)

// tree makes a directory that looks like a tree.
func tree(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "agent"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindOrder(t *testing.T) {
	flag, env := tree(t), tree(t)
	home := filepath.Join(t.TempDir(), "home")
	for name, c := range map[string]struct {
		env  paths.Env
		want string
	}{
		"the flag first":     {paths.Env{Flag: flag, CTXRoot: env, Home: home, UID: 7}, flag},
		"then CTX_ROOT":      {paths.Env{CTXRoot: env, Home: home, UID: 7}, env},
		"it need not exist":  {paths.Env{Flag: "/nowhere/at/all", UID: 7}, "/nowhere/at/all"},
		"it is made clean":   {paths.Env{Flag: flag + "/./agent/..", UID: 7}, flag},
		"a link is followed": {paths.Env{Flag: link(t, flag), UID: 7}, flag},
	} {
		l, err := paths.Find(c.env)
		if err != nil || l.Root != c.want {
			t.Errorf("%s: %q, %v", name, l.Root, err)
		}
	}
	if paths.IsTree(paths.SystemRoot) {
		return // this machine has a system tree, which comes before the user's own
	}
	l, err := paths.Find(paths.Env{DataHome: "/data", Home: home, UID: 7})
	if err != nil || l.Root != "/data/cortexfs" {
		t.Errorf("the user tree: %q, %v", l.Root, err)
	}
	l, err = paths.Find(paths.Env{Home: home, UID: 7})
	if err != nil || l.Root != filepath.Join(home, ".local/share/cortexfs") {
		t.Errorf("the default: %q, %v", l.Root, err)
	}
	if _, err := paths.Find(paths.Env{UID: 7}); !errdefs.Is(err, errdefs.Invalid) || errdefs.HintOf(err) == "" {
		t.Errorf("without HOME: %v", err)
	}
}

func link(t *testing.T, to string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestRelativeFlag(t *testing.T) {
	dir := tree(t)
	t.Chdir(filepath.Dir(dir))
	l, err := paths.Find(paths.Env{Flag: filepath.Base(dir), UID: 7})
	if err != nil || l.Root != dir {
		t.Errorf("%q, %v", l.Root, err)
	}
}

func TestIsTree(t *testing.T) {
	dir := tree(t)
	if !paths.IsTree(dir) || paths.IsTree(t.TempDir()) || paths.IsTree("/nowhere/at/all") {
		t.Error("a tree has an agent directory and a status file")
	}
	if err := os.Remove(filepath.Join(dir, "status")); err != nil {
		t.Fatal(err)
	}
	if paths.IsTree(dir) {
		t.Error("without status it is no tree")
	}
}

func TestLayouts(t *testing.T) {
	user := paths.New(paths.Env{UID: 1000, Home: "/home/a", RuntimeDir: "/run/user/1000"}, "/t")
	other := paths.New(paths.Env{UID: 1000, Home: "/home/a", RuntimeDir: "/run/user/1000"}, "/u")
	bare := paths.New(paths.Env{UID: 1000, Home: "/home/a"}, "/t")
	system := paths.New(paths.Env{UID: 0, RuntimeDir: "/run/user/0"}, paths.SystemRoot)
	rooted := paths.New(paths.Env{UID: 0}, "/t")
	for got, want := range map[string]string{
		user.Config:                        "/home/a/.config/cortexfs",
		user.Secrets:                       "/home/a/.config/cortexfs/secrets",
		user.Locks:                         "/t/.lock",
		user.Agent("coder"):                "/t/agent/coder",
		user.Control("coder"):              "/t/agent/coder.d",
		user.AgentLink("coder"):            "/t/agent/coder.sock",
		user.Bin("tsh"):                    "/t/bin/tsh",
		user.AgentHome(1000, "coder"):      "/t/home/1000/agent/coder",
		user.Sessions(1000, "coder"):       "/t/home/1000/agent/coder/session",
		user.View("coder"):                 "/t/.view/coder",
		user.HostPath("/ctx"):              "/t",
		user.HostPath("/ctx/tool"):         "/t/tool",
		user.HostPath("/ctxx/tool"):        "/ctxx/tool",
		user.HostPath("/workspace"):        "/workspace",
		system.Runtime:                     "/run/cortexfs",
		system.Socket("coder"):             "/run/cortexfs/agent/coder.sock",
		system.Locks:                       "/run/cortexfs/lock",
		system.Secrets:                     "/var/lib/cortexfs/secrets",
		system.ModelSocket():               "/run/cortexfs/model.sock",
		user.Providers():                   "/home/a/.config/cortexfs/providers.d",
		user.Keys():                        "/home/a/.config/cortexfs/secrets/provider",
		filepath.Dir(rooted.Runtime):       "/run/cortexfs",
		filepath.Dir(user.Runtime):         "/run/user/1000/cortexfs",
		filepath.Dir(bare.Runtime):         "/tmp/cortexfs-1000",
		filepath.Base(bare.Runtime):        filepath.Base(user.Runtime),
		filepath.Dir(user.ServeLog()):      user.Runtime,
		filepath.Dir(user.Socket("coder")): user.Sockets(),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if user.Runtime == other.Runtime {
		t.Error("two trees share a runtime directory")
	}
	if user.System || !system.System || !rooted.System {
		t.Error("system mode is root's")
	}
	for _, l := range []paths.Layout{user, system, rooted} {
		for _, dir := range []string{l.Root, l.Runtime, l.Config, l.Secrets} {
			if !slices.Contains(l.Protected(), dir) {
				t.Errorf("%s is not protected", dir)
			}
		}
	}
}

func TestBelow(t *testing.T) {
	for _, c := range []struct {
		p, dir string
		want   bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/", "/a", false}, {"/a", "/", true},
	} {
		if paths.Below(c.p, c.dir) != c.want {
			t.Errorf("%s below %s: not %v", c.p, c.dir, c.want)
		}
	}
	word := rapid.StringMatching(`[a-z.]{1,4}`)
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Clean("/" + strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "dir"), "/"))
		p := filepath.Clean("/" + strings.Join(rapid.SliceOfN(word, 0, 4).Draw(t, "p"), "/"))
		rel, err := filepath.Rel(dir, p)
		inside := err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		if paths.Below(p, dir) != inside {
			t.Fatalf("%s below %s: not %v", p, dir, inside)
		}
	})
}

// The sockets of terminals are where the documentation says, for the tree of
// the machine and the user's own, and apart for any other tree.
func TestTerminals(t *testing.T) {
	env := paths.Env{UID: 1000, Home: "/home/a", RuntimeDir: "/run/user/1000"}
	own := paths.New(env, "/home/a/.local/share/cortexfs")
	other := paths.New(env, "/t")
	for got, want := range map[string]string{
		paths.New(env, paths.SystemRoot).TerminalSocket("coder", "default"): "/run/user/1000/cortexfs/terminal/coder/default/main.sock",
		own.TerminalSocket("coder", "default"):                              "/run/user/1000/cortexfs/terminal/coder/default/main.sock",
		own.TerminalLock("coder", "default"):                                own.Root + "/.lock/terminal:coder:default",
		other.TerminalDir("coder", "s"):                                     other.Runtime + "/terminal/coder/s",
		paths.New(paths.Env{UID: 0}, paths.SystemRoot).Terminals:            "/tmp/cortexfs-0/terminal",
		own.TerminalLink(1000, "coder", "s"):                                own.Root + "/home/1000/agent/coder/session/s/terminal/main.sock",
		own.TerminalResource(1000, "coder", "s"):                            own.Root + "/home/1000/agent/coder/session/s/terminal/terminal-coder-s",
	} {
		if got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}
	if !slices.Contains(own.Protected(), own.Terminals) {
		t.Error("a workspace may hold the sockets of terminals")
	}
}

// The user's own tree is the same one by whatever links it is reached.
func TestTerminalsOfOwnTree(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(top, "real/cortexfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	data := link(t, filepath.Join(top, "real"))
	for _, root := range []string{filepath.Join(data, "cortexfs"), filepath.Join(top, "real/cortexfs")} {
		l, err := paths.Find(paths.Env{UID: 7, DataHome: data, RuntimeDir: "/run/user/7", Flag: root})
		if err != nil || l.Terminals != "/run/user/7/cortexfs/terminal" {
			t.Errorf("%s: %s, %v", root, l.Terminals, err)
		}
	}
}
