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
	env := append(a.owned("dumb"), "PATH=/usr/local/bin:/usr/bin:/bin")
	env = append(env, run...)
	for _, kv := range a.Env {
		if name, _, _ := strings.Cut(kv, "="); !control.RuntimeOwned(name) {
			env = append(env, kv)
		}
	}
	return env
}

// HookEnviron is the complete environment of a hook: that of a tool, but the env
// control has no say in it, and HOME is empty, so that no file that the agent wrote
// there makes the programs of a hook do something else.
func (a *Agent) HookEnviron(run ...string) []string {
	bare := *a
	bare.Env = nil
	env := bare.Environ(run...)
	for i, kv := range env {
		if strings.HasPrefix(kv, "HOME=") {
			env[i] = "HOME=" + hookHome
		}
	}
	return env
}

// hookHome is memory that each sandbox has of its own.
const hookHome = "/tmp"

// TerminalEnviron is the complete environment of a terminal of the agent and of
// everything that is started in it: what the runtime owns but PATH, for a
// terminal that is an xterm of 256 colours. The env control has no say in it.
func (a *Agent) TerminalEnviron() []string { return a.owned("xterm-256color") }

// owned are the variables that no control sets, for this type of terminal.
func (a *Agent) owned(term string) []string {
	return []string{
		"CTX_ROOT=" + paths.InRoot,
		"CTX_HOME=" + paths.Layout{Root: paths.InRoot}.Home(a.Owner.UID),
		"CTX_AGENT=" + string(a.Name),
		"CTX_AGENT_SUBJECT=" + string(a.Subject),
		"CTX_PATH=" + strings.Join(a.Path, ":"),
		"HOME=" + paths.InHome,
		"USER=" + a.User,
		"LOGNAME=" + a.User,
		"SHELL=" + shell(),
		"TERM=" + term,
		"LANG=C.UTF-8",
	}
}

// shell is the shell that sandboxes have: they see the host's /usr.
func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}
