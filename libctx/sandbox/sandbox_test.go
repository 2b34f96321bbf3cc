package sandbox

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func merged() Host {
	return Host{
		Roots:   []Root{{"/bin", "usr/bin"}, {"/lib", "usr/lib"}, {"/lib64", "usr/lib64"}},
		EtcDirs: []string{"alternatives", "ssl/certs"},
	}
}

func descriptors() FDs {
	return FDs{Status: 3, Block: 4, Channel: 5, Seccomp: 7, Files: []File{{8, "/etc/passwd"}, {9, "/etc/ld.so.cache"}}}
}

func TestArgsGolden(t *testing.T) {
	tool := Spec{
		Kind: Tool, Identity: asuser.Identity{UID: 1000, GID: 1000}, UserName: "ann",
		View: "/var/lib/cortexfs/tree/.view/coder/0123", Tools: "/usr/bin/ctxtool", Tsh: "/usr/bin/tsh",
		Home:    "/var/lib/cortexfs/tree/home/1000/agent/coder",
		Control: "/run/cortexfs/control/01J/sock",
		Workspace: Workspace{
			Dir: "/home/ann/my src", Dev: 2049, Ino: 77,
			ReadOnly: []Bind{
				{"/home/ann/my src/.git", "/workspace/.git", 2049, 78},
				{"/home/ann/main/.git", "/home/ann/main/.git", 2049, 79},
				{"/srv/data/repo/.git", "/srv/data/repo/.git", 2049, 80}, // an extra mount takes its place
			},
			Links: []Link{{"/workspace", "/sub"}},
		},
		Mounts: mount.Table{
			{Source: "/srv/cache", Target: "/opt/cache"},
			{Source: "/srv/other", Target: "/srv/data", ReadOnly: true},
		},
		Expect: []Expect{{Path: "/home/agent", Dev: 2049, Ino: 90}},
		Env:    []string{"HOME=/home/agent", "X=a=b c"},
		Argv:   []string{"/ctx/tool/shell.exec", "--", "make all"},
	}
	terminal := tool
	terminal.Kind, terminal.Ctxterm = Terminal, "/usr/lib/cortexfs/ctxterm"
	terminal.Workspace.Frozen = true
	terminal.Mounts = mount.Table{{
		Source: "/var/lib/cortexfs/tree/agent/coder.d", Target: "/ctx/agent/coder.d", ReadOnly: true,
	}}
	terminal.Argv = []string{"/ctx/bin/ctxterm", "--listen", "fd:3", "--", "/ctx/bin/tsh"}
	root := Spec{Kind: Agent, Network: true, Argv: []string{"/ctx/agent/x"}, Limits: Limits{1, 2, 3}}
	for name, c := range map[string]struct {
		s Spec
		h Host
	}{
		"tool":     {tool, merged()},
		"terminal": {terminal, merged()},
		"minimal":  {root, Host{Roots: []Root{{"/bin", ""}, {"/lib", ""}}}},
	} {
		t.Run(name, func(t *testing.T) {
			// One option a line, with its values.
			var b strings.Builder
			for i, a := range Args(c.s, c.h, descriptors()) {
				if strings.HasPrefix(a, "--") && i > 0 {
					b.WriteByte('\n')
				} else if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(a)
			}
			b.WriteByte('\n')
			fmt.Fprintf(&b, "%+v\n", RequestOf(c.s))
			golden := filepath.Join("testdata", name+".args")
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("arguments changed (-golden +now; -update rewrites the file):\n%s", diff)
			}
		})
	}
}

// TestProtectedElsewhere: what is protected of a workspace is so wherever else a mount
// shows it.
func TestProtectedElsewhere(t *testing.T) {
	git := Bind{"/home/ann/src/.git", "/workspace/.git", 1, 2}
	for name, c := range map[string]struct {
		mounts mount.Table
		want   []Bind
		bound  []string
	}{
		"the workspace": {mount.Table{{Source: "/home/ann/src", Target: "/mnt"}}, []Bind{git, {git.Source, "/mnt/.git", 1, 2}}, nil},
		"above it":      {mount.Table{{Source: "/home", Target: "/mnt"}}, []Bind{git, {git.Source, "/mnt/ann/src/.git", 1, 2}}, nil},
		"everything":    {mount.Table{{Source: "/", Target: "/mnt"}}, []Bind{git, {git.Source, "/mnt/home/ann/src/.git", 1, 2}}, nil},
		"itself":        {mount.Table{{Source: git.Source, Target: "/mnt"}}, []Bind{git, {git.Source, "/mnt", 1, 2}}, []string{"--ro-bind", git.Source, "/mnt"}},
		"below it":      {mount.Table{{Source: git.Source + "/hooks", Target: "/mnt"}}, []Bind{git}, []string{"--ro-bind", git.Source + "/hooks", "/mnt"}},
		"beside it":     {mount.Table{{Source: "/home/ann/src2", Target: "/mnt"}}, []Bind{git}, []string{"--bind", "/home/ann/src2", "/mnt"}},
		"read-only":     {mount.Table{{Source: "/home/ann/src", Target: "/mnt", ReadOnly: true}}, []Bind{git}, nil},
		"another mount on it": {
			mount.Table{{Source: "/home/ann/src", Target: "/mnt"}, {Source: "/srv", Target: "/mnt/.git"}}, []Bind{git}, nil,
		},
	} {
		s := Spec{Workspace: Workspace{Dir: "/home/ann/src", ReadOnly: []Bind{git}}, Mounts: c.mounts}
		if diff := cmp.Diff(c.want, readOnly(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if line := strings.Join(Options(s, merged(), descriptors()), " "); !strings.Contains(line, strings.Join(c.bound, " ")) {
			t.Errorf("%s: no %v in %s", name, c.bound, line)
		}
	}
}

func TestAccounts(t *testing.T) {
	for _, c := range []struct {
		s      Spec
		passwd string
		group  string
		hosts  bool
	}{
		{Spec{Identity: asuser.Identity{UID: 1000, GID: 100}, UserName: "ann"},
			"ann:x:1000:100::/home/agent:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
			"ann:x:100:\nnogroup:x:65534:\n", true},
		{Spec{Identity: asuser.Identity{UID: 60001, GID: 60001}},
			"60001:x:60001:60001::/home/agent:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
			"60001:x:60001:\nnogroup:x:65534:\n", true},
		{Spec{Identity: asuser.Identity{UID: 7, GID: 7}, UserName: "x:0:0\nroot", Network: true},
			"7:x:7:7::/home/agent:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
			"7:x:7:\nnogroup:x:65534:\n", false},
		{Spec{Identity: asuser.Identity{UID: 65534, GID: 65534}, UserName: "nobody"},
			"nobody:x:65534:65534::/home/agent:/bin/sh\n", "nobody:x:65534:\n", true},
	} {
		f := Accounts(c.s)
		_, hosts := f["/etc/hosts"]
		if f["/etc/passwd"] != c.passwd || f["/etc/group"] != c.group || hosts != c.hosts {
			t.Errorf("%+v: %q", c.s, f)
		}
		if copied := slices.Contains(Copied(c.s), "/etc/resolv.conf"); copied == c.hosts {
			t.Errorf("resolv.conf with network %v: %v", c.s.Network, copied)
		}
	}
}

func TestReserved(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/usr": true, "/usr/src/x": true, "/ctx/tool": true, "/workspace/.git": true, "/proc/1": true,
		"/home": true, "/home/agent": true, "/home/agent/x": true, "/tmp": true, "/run": true, "/run/cortexfs": true, "/var": true,
		"/home/ann/src/.git": false, "/tmp/x/.git": false, "/srv": false, "/var/www": false, "/run/user/1": false,
		"/userland": false, "/.git/modules/a": false, "/workspaces/a": false,
	} {
		if got := Reserved(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestReport(t *testing.T) {
	for _, text := range []string{Handover, Ready + Handover} {
		if err := ParseReport(text); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", Ready} {
		if err := ParseReport(text); !errdefs.Is(err, errdefs.Unavailable) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"go", "what", "go\nwhat\n", "\n", "go\nready\n", "ready\nready\ngo\n"} {
		if err := ParseReport(text); !errdefs.Is(err, errdefs.Internal) {
			t.Errorf("%q: %v", text, err)
		}
	}
	why := errdefs.New(errdefs.Denied, "/workspace: no\nway: %w", errors.New("x"))
	for _, before := range []string{"", Handover, Ready, Ready + Handover} {
		err := ParseReport(before + Refusal(why))
		if !errdefs.Is(err, errdefs.Denied) || err.Error() != "/workspace: no way: x" {
			t.Errorf("%v", err)
		}
	}
}
