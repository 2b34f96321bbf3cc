package packages

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wanted are files of each package, whatever kind it is of.
var wanted = map[string][]string{
	"cortexfs-ctx": {
		"/usr/bin/ctx", "/usr/bin/ctx-agent.sh", "/usr/share/man/man1/ctx.1.gz", "/usr/share/man/man1/ctx-agent.1.gz", "/usr/share/man/man5/cortexfs-control.5.gz",
		"/usr/share/bash-completion/completions/ctx", "/usr/share/fish/vendor_completions.d/ctx.fish", "/usr/share/doc/cortexfs-ctx/reference/cli.md",
	},
	"cortexfs-ctxd": {
		"/usr/bin/ctxd", "/usr/bin/ctxmodel", "/usr/share/man/man8/ctxd.8.gz", "/usr/share/man/man1/ctxmodel.1.gz",
		"/usr/lib/systemd/system/ctxd@.socket", "/usr/lib/systemd/system/ctxd@.service", "/usr/lib/systemd/system/ctx.mount", "/usr/lib/systemd/system/cortexfs.target",
		"/usr/lib/systemd/system/ctxd-admin.socket", "/usr/lib/systemd/system/ctxmodel.service", "/usr/lib/systemd/user/ctxd.service",
		"/usr/lib/sysusers.d/cortexfs.conf", "/usr/lib/tmpfiles.d/cortexfs.conf",
	},
	"cortexfs-ctxterm": {"/usr/bin/ctxterm", "/usr/share/man/man1/ctxterm.1.gz"},
	"cortexfs-tsh":     {"/usr/bin/tsh", "/usr/bin/ctxtool", "/usr/share/man/man1/tsh.1.gz", "/usr/share/man/man8/ctxtool.8.gz"},
	"cortexfs":         {},
}

// The version, which is one between releases, as package managers have it.
const (
	tilde  = "0.2.0~g0123456789ab.dirty"
	joined = "0.2.0g0123456789ab.dirty"
)

// kinds say how the files of a package are listed, one "MODE OWNER PATH" a line,
// and what its file is called.
var kinds = map[string]struct{ file, list string }{
	"deb":  {"%s_" + tilde + "-1_*.deb", `dpkg-deb -c "$1" | awk '{sub(/^\./, "", $6); print $1, $2, $6}'`},
	"rpm":  {"%s-" + tilde + "-1.*.rpm", `rpm -qp --nosignature --qf '[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES}\n]' "$1"`},
	"arch": {"%s-" + joined + "-1-*.pkg.tar.zst", `zstd -dc "$1" | tar -tv --numeric-owner | awk '{sub(/^0\/0$/, "root/root", $2); print $1, $2, "/" $6}'`},
}

// listing is what is in a package.
func listing(t *testing.T, name, kind string) []string {
	t.Helper()
	k := kinds[kind]
	found, err := filepath.Glob(filepath.Join(dist(t, 0), fmt.Sprintf(k.file, name)))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s, %s: %q, %v", name, kind, found, err)
	}
	return strings.Split(strings.TrimSpace(output(t, "bash", "-o", "pipefail", "-euc", k.list, "sh", found[0])), "\n")
}

// TestContent: every package has what it should, of root and for all to read, and
// no two have a file in common.
func TestContent(t *testing.T) {
	allowed := regexp.MustCompile(`^/(usr/(bin|lib/systemd|lib/sysusers\.d|lib/tmpfiles\.d|share)/|\.(PKGINFO|MTREE|INSTALL)$)`)
	for kind := range kinds {
		owner := map[string]string{}
		for name, files := range wanted {
			var paths []string
			for _, line := range listing(t, name, kind) {
				mode, rest, _ := strings.Cut(line, " ")
				by, path, _ := strings.Cut(rest, " ")
				if strings.HasPrefix(mode, "d") && (mode != "drwxr-xr-x" || by != "root/root") {
					t.Errorf("%s, %s: %s is %s of %s", name, kind, path, mode, by)
				}
				if path == "" || strings.HasPrefix(mode, "d") {
					continue
				}
				paths = append(paths, path)
				want := "-rw-r--r--"
				if strings.HasPrefix(path, "/usr/bin/") {
					want = "-rwxr-xr-x"
				}
				if by != "root/root" || mode != want && !strings.HasPrefix(path, "/.") {
					t.Errorf("%s, %s: %s is %s of %s", name, kind, path, mode, by)
				}
				if !allowed.MatchString(path) {
					t.Errorf("%s, %s: what is %s there for?", name, kind, path)
				}
				if other := owner[path]; other != "" && !strings.HasPrefix(path, "/.") {
					t.Errorf("%s: %s is in %s and in %s", kind, path, name, other)
				}
				owner[path] = name
			}
			for _, file := range append(files, "/usr/share/doc/"+name+"/copyright") {
				if !slices.Contains(paths, file) {
					t.Errorf("%s, %s: there is no %s in %q", name, kind, file, paths)
				}
			}
		}
	}
}

// TestWhatPackagesSay: their fields.
func TestWhatPackagesSay(t *testing.T) {
	dir := dist(t, 0)
	glob := func(pattern string) string {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		if len(found) != 1 {
			t.Fatalf("%s: %q", pattern, found)
		}
		return found[0]
	}
	for _, c := range []struct {
		show  []string
		wants []string
	}{
		{[]string{"dpkg-deb", "-f", glob("cortexfs-ctxd_*.deb")}, []string{
			"Version: " + tilde + "-1\n", "bubblewrap (>= 0.5), cortexfs-ctx (= " + tilde + "-1), cortexfs-tsh (= " + tilde + "-1)",
		}},
		{[]string{"dpkg-deb", "-f", glob("cortexfs_*.deb")}, []string{"Architecture: all\n", "cortexfs-ctxterm (= " + tilde + "-1)"}},
		{[]string{"rpm", "-qp", "--nosignature", "--requires", "--provides", "--scripts", glob("cortexfs-ctxd-*.rpm")}, []string{
			"cortexfs-tsh = " + tilde + "-1", "cortexfs-ctxd = " + tilde + "-1", "postinstall scriptlet", "systemd-sysusers",
		}},
		{[]string{"sh", "-c", `zstd -dc "$1" | tar -xO .PKGINFO .INSTALL`, "sh", glob("cortexfs-ctxd-*.zst")}, []string{
			"pkgver = " + joined + "-1\n", "depend = cortexfs-tsh=" + joined + "-1\n", "post_upgrade()", "pre_remove()",
		}},
	} {
		got := output(t, c.show...)
		for _, want := range c.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q does not say %q:\n%s", c.show, want, got)
			}
		}
	}
}

// TestLintian: no errors.
func TestLintian(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(dist(t, 0), "*.deb"))
	if err != nil || len(found) != len(wanted) {
		t.Fatalf("%q, %v", found, err)
	}
	if said := output(t, append([]string{"lintian", "--allow-root", "--fail-on", "error"}, found...)...); strings.Contains(said, "mismatched-override") {
		t.Error(said)
	}
}
