package admit

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/shellsafe"
	"github.com/go-json-experiment/json"
)

// The built-in tools that run commands.
const (
	bash      libctx.Tool = "bash"
	shellExec libctx.Tool = "shell.exec"
)

// knownSafe reports whether a call of one of the two runs a command that is known
// to only look. Somebody's own tool of that name may do with its arguments what it
// likes, and of these two a member that is not one of theirs is not understood.
func knownSafe(t Tool, c Call) bool {
	object, err := objectOf(t, c.Arguments)
	if err != nil || t.Path != builtins+string(t.Name) {
		return false
	}
	var a struct {
		Cmd     string   `json:"cmd"`
		Script  string   `json:"script"`
		Args    []string `json:"args"`
		Timeout int64    `json:"timeout_ms"`
	}
	if json.Unmarshal(object, &a, json.RejectUnknownMembers(true)) != nil {
		return false
	}
	switch t.Name {
	case shellExec:
		return a.Script == "" && a.Args == nil && shellsafe.Script(a.Cmd)
	case bash:
		return a.Cmd == "" && (a.Script == "" && shellsafe.Words(append([]string{"bash"}, a.Args...)) ||
			a.Args == nil && shellsafe.Script(a.Script))
	}
	return false
}
