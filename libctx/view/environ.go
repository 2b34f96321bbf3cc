package view

import (
	"os"
	"strings"

	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/paths"
)

// Environ is the complete environment of a process of the agent, tools and the
// executable itself alike: what the runtime owns, then run, the KEY=VALUE pairs
// of the one run (CTX_SESSION, CTX_RUN_ID, …), then the env control without the
// names that are the runtime's. Nothing of the caller's environment is in it.
func (a *Agent) Environ(run ...string) []string {
	env := []string{
		"CTX_ROOT=" + paths.InRoot,
		"CTX_HOME=" + paths.Layout{Root: paths.InRoot}.Home(a.Owner.UID),
		"CTX_AGENT=" + string(a.Name),
		"CTX_AGENT_SUBJECT=" + string(a.Subject),
		"CTX_PATH=" + strings.Join(a.Path, ":"),
		"HOME=" + paths.InHome,
		"USER=" + a.User,
		"LOGNAME=" + a.User,
		"SHELL=" + shell(),
		"TERM=dumb",
		"LANG=C.UTF-8",
		"PATH=/usr/local/bin:/usr/bin:/bin",
	}
	env = append(env, run...)
	for _, kv := range a.Env {
		if name, _, _ := strings.Cut(kv, "="); !control.RuntimeOwned(name) {
			env = append(env, kv)
		}
	}
	return env
}

// shell is the shell that sandboxes have: they see the host's /usr.
func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}
