package sandboxrun

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/sandbox"
)

// places are where distributions put bubblewrap. PATH is not asked: whoever
// sets it would choose what confines him.
var places = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// needed are the options of bubblewrap that old versions lack.
var needed = []string{"--disable-userns", "--json-status-fd", "--perms", "--size", "--args", "--unshare-cgroup-try"}

const install = "install the package bubblewrap, version 0.8 or later"

// findBwrap finds bubblewrap.
func findBwrap(path string) (string, error) {
	candidates := places
	if path != "" {
		candidates = []string{path}
	}
	for _, p := range candidates {
		st, err := os.Stat(p)
		if err != nil || !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0 {
			continue
		}
		return p, nil
	}
	return "", errdefs.New(errdefs.Unavailable, "sandbox: no bubblewrap at %s", strings.Join(candidates, ", ")).WithHint(install)
}

// checkOptions tests that bubblewrap can do what the recipe asks.
func checkOptions(bwrap string) error {
	ctx, cancel := context.WithTimeout(context.Background(), libctx.SandboxStart)
	defer cancel()
	help := exec.CommandContext(ctx, bwrap, "--help")
	help.Env = []string{}
	text, err := help.CombinedOutput()
	if err != nil {
		return errdefs.New(errdefs.Unavailable, "sandbox: %s --help: %w", bwrap, err).WithHint(install)
	}
	for _, option := range needed {
		if !bytes.Contains(text, []byte(option+" ")) {
			return errdefs.New(errdefs.Unavailable, "sandbox: %s does not know %s", bwrap, option).WithHint(install)
		}
	}
	return nil
}

func checkEntry(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
	case !filepath.IsAbs(path):
		err = errors.New("is not an absolute path")
	case !st.Mode().IsRegular() || st.Mode().Perm()&0o111 == 0:
		err = errors.New("is not an executable file")
	default:
		return nil
	}
	return errdefs.New(errdefs.Unavailable, "sandbox: ctxtool at %q: %w", path, err).
		WithHint("install ctxtool beside ctxd")
}

// try runs something that does nothing.
func (l *Launcher) try() error {
	ctx, cancel := context.WithTimeout(context.Background(), libctx.SandboxStart)
	defer cancel()
	err := fault.Fail("sandbox.trial")
	if err == nil {
		_, err = l.Run(ctx, sandbox.Spec{
			Identity: asuser.Self(),
			Argv:     []string{"/bin/sh", "-c", ":"},
		}, Stdio{})
	}
	if err == nil {
		return nil
	}
	e := errdefs.New(errdefs.Unavailable, "no sandbox can be started: %w", err)
	if hint := errdefs.HintOf(err); hint != "" {
		return e.WithHint("%s", hint)
	}
	return e
}

// blockers are settings of the kernel that keep ordinary users from making user
// namespaces.
var blockers = []struct{ file, value, hint string }{
	{"/proc/sys/kernel/unprivileged_userns_clone", "0",
		"allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", "0",
		"allow user namespaces: sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"give bwrap an AppArmor profile with the rule 'userns,', or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
}

// remedy is what to do about a message of bubblewrap; "" if that is not known.
func remedy(message string) string {
	m := strings.ToLower(message)
	for _, part := range []string{"namespace", "uid map", "rtm_newaddr", "loopback", "setting up"} {
		if !strings.Contains(m, part) {
			continue
		}
		for _, b := range blockers {
			now, err := os.ReadFile(b.file)
			if err == nil && strings.TrimSpace(string(now)) == b.value {
				return b.hint
			}
		}
		return "enable unprivileged user namespaces for bwrap (sysctl user.max_user_namespaces, " +
			"kernel.unprivileged_userns_clone, an AppArmor or seccomp rule of a container around this system)"
	}
	return ""
}
