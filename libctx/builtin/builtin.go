// Package builtin defines the tools that come with CortexFS: what a model is
// told about each, the schema of its arguments, its effect class, and the exact
// bytes of its files in a tree. What the tools do is in program ctxtool; what a
// call of one may do is decided from the files in the tree, never from here.
package builtin

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/paths"
)

// Tool is one built-in tool. Description is one line of text, Schema a JSON
// Schema (draft 2020-12) of its arguments.
type Tool struct {
	Name        libctx.Tool
	Description string
	Schema      string
	Effect      control.Effect
	Cap         string // capability word, for people
	Mode        string // "json" or "cli"
	Interpreter string // of its two-line file, as seen inside
	Replay      bool   // an interrupted call may be run again
	Parallel    bool   // several calls may run at the same time
}

// Tools lists the built-in tools, sorted by name.
func Tools() []Tool {
	tools := []Tool{
		{Name: "agent.update", Effect: control.HostMutation, Cap: "self"},
		{Name: "bash", Effect: control.HostProcess, Cap: "execute"},
		{Name: "fs.list", Effect: control.WorkspaceRead, Cap: "read", Replay: true, Parallel: true},
		{Name: "fs.read", Effect: control.WorkspaceRead, Cap: "read", Replay: true, Parallel: true},
		{Name: "fs.replace", Effect: control.WorkspaceMutation, Cap: "write"},
		{Name: "fs.search", Effect: control.WorkspaceRead, Cap: "read", Replay: true, Parallel: true},
		{Name: "fs.stat", Effect: control.WorkspaceRead, Cap: "read", Replay: true, Parallel: true},
		{Name: "fs.write", Effect: control.WorkspaceMutation, Cap: "write"},
		{Name: "shell.exec", Effect: control.HostProcess, Cap: "execute"},
		{Name: "tmux", Effect: control.HostProcess, Cap: "execute"},
		// The host serves tsh itself: its file is there to be found and admitted.
		{Name: "tsh", Effect: control.Pure, Cap: "route", Mode: control.ModeCLI, Interpreter: paths.InBin + "/tsh"},
		{Name: "tsh.config", Effect: control.Pure, Cap: "read"},
		{Name: "zellij", Effect: control.HostProcess, Cap: "execute"},
	}
	for i := range tools {
		t := &tools[i]
		if t.Interpreter == "" {
			t.Mode, t.Interpreter = control.ModeJSON, paths.InBin+"/ctxtool"
		}
		t.Description, t.Schema = about.Description(t.Name), about.Schema(t.Name)
	}
	return tools
}

// Find is the built-in tool of that name.
func Find(name libctx.Tool) (Tool, bool) {
	for _, t := range Tools() {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// Files is the content of every file of the tool in a tree: "" is the
// executable tool/<name> itself, the others are controls in tool/<name>.d. There
// is no policy among them, so that the agents' policies decide.
func (t Tool) Files() map[string][]byte {
	word := func(yes bool, is, isNot string) []byte {
		if yes {
			return []byte(is + "\n")
		}
		return []byte(isNot + "\n")
	}
	return map[string][]byte{
		"":            []byte("#!" + t.Interpreter + "\n" + string(t.Name) + "\n"),
		"name":        []byte(t.Name + "\n"),
		"description": []byte(t.Description + "\n"),
		"schema":      []byte(t.Schema + "\n"),
		"cap":         []byte(t.Cap + "\n"),
		"effect":      []byte(t.Effect + "\n"),
		"mode":        []byte(t.Mode + "\n"),
		"replay":      word(t.Replay, control.ReplaySafe, control.ReplayUnsafe),
		"parallel":    word(t.Parallel, "1", "0"),
	}
}
