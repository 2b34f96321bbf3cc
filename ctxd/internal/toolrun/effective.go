package toolrun

import (
	"slices"

	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// effective is the policy that is in force for an agent's calls, each value with
// where it comes from.
func effective(a *view.Agent) *wire.EffectivePolicy {
	tool := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return a.Policy.Allows(a.Subject, "tool", n, "execute") })
	}
	writes, runs := a.Perm.Has(control.Write), a.Perm.Has(control.Execute)
	free := a.Effects == control.EffectsUnsafeHost
	return &wire.EffectivePolicy{
		EffectPolicy:         valued(a, a.Effects, "effects"),
		Approval:             valued(a, a.Approval, "approval"),
		Perm:                 valued(a, a.Perm.String(), "perm"),
		WorkspaceConfinement: valued(a, !free, "effects"),
		AllowEdit:            valued(a, writes && tool("fs.replace"), "perm", "policy"),
		AllowWrite:           valued(a, writes && tool("fs.write"), "perm", "policy"),
		AllowProcess:         valued(a, runs && free, "perm", "effects"),
		AllowShell:           valued(a, runs && tool("bash", "shell.exec"), "perm", "policy"),
		ShellPath:            valued(a, wire.ShellPath{Selection: shellSelection()}),
		BashTimeoutMS:        valued(a, a.Timeout.Milliseconds(), "timeout"),
		MaxOutputBytes:       valued(a, a.ResultBytes, "result_bytes"),
		AllowRemoteRead:      valued(a, a.Network, "policy"),
	}
}

// valued is a value with its source: a control file, if one that it depends on is
// there.
func valued[T any](a *view.Agent, v T, files ...string) wire.Sourced[T] {
	s := wire.Sourced[T]{Value: v, Source: wire.SourceDefault}
	if slices.ContainsFunc(files, a.Given) {
		s.Source = wire.SourceConfig
	}
	return s
}

// shellSelection says which shell the tool bash finds. Sandboxes see the host's
// programs.
func shellSelection() string {
	switch path, err := program.Find("bash"); {
	case err != nil:
		return "unavailable"
	case path == "/bin/bash" || path == "/usr/bin/bash":
		return "system_bash"
	}
	return "path_bash"
}
