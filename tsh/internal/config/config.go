// Package config is the only place where tsh and ctxtool read their
// environment.
package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/paths"
)

// Tool is what ctxtool takes from its environment.
type Tool struct {
	Run     string        // CTX_RUN_ID; may be empty
	JSON    bool          // CTX_TOOL_MODE is json: the host reads the output
	Timeout time.Duration // CTX_TOOL_TIMEOUT_MS, how long the host lets the call take; 0 if it does not say
	Home    string        // HOME of an agent's session, where long outputs are kept; empty outside of one
	Session string        // CTX_SESSION; empty outside of one
	Environ []string      // for commands that a tool starts: all but CTX_TOOL_…
	Shell   Shell         // for tools about the tool shell
	Self    Self          // for tools about the agent that calls them
}

// Self is whose process it is, as its host says; all are empty outside of runs.
// Nothing of it proves anything to the host, who knows.
type Self struct {
	Socket  string // CTX_CONTROL_SOCKET
	Agent   string // CTX_AGENT
	Session string // CTX_SESSION
	Run     string // CTX_RUN_ID
}

// ForTool reads the environment of a built-in tool.
func ForTool() Tool {
	t := Tool{Run: os.Getenv("CTX_RUN_ID"), JSON: os.Getenv("CTX_TOOL_MODE") == "json", Shell: ForShell()}
	t.Self = Self{Socket: os.Getenv("CTX_CONTROL_SOCKET"), Agent: t.Shell.Agent, Session: t.Shell.Session, Run: t.Shell.Run}
	if session, err := libctx.ParseSession(os.Getenv("CTX_SESSION")); err == nil && t.JSON {
		t.Session, t.Home = string(session), os.Getenv("HOME")
	}
	if ms, err := strconv.ParseUint(os.Getenv("CTX_TOOL_TIMEOUT_MS"), 10, 31); err == nil {
		t.Timeout = time.Duration(ms) * time.Millisecond
	}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CTX_TOOL_") {
			t.Environ = append(t.Environ, kv)
		}
	}
	return t
}

// Shell is what tsh takes from its environment.
type Shell struct {
	Paths   paths.Env // for paths.Find, without the flag
	Home    string    // CTX_HOME, as seen inside; may be empty
	Path    string    // CTX_PATH; may be empty
	Agent   string    // CTX_AGENT; empty outside of agents
	Session string    // CTX_SESSION; empty outside of runs
	Run     string    // CTX_RUN_ID; empty outside of runs, so in terminals too
	Environ []string  // for the tools it runs: everything
	History string    // the file of what was typed; empty without HOME
	Dumb    bool      // the terminal, if there is one, can not move its cursor
	Color   bool      // and may show colours
}

// ForShell reads the environment of tsh.
func ForShell() Shell {
	s := Shell{
		Paths: paths.Env{
			CTXRoot:    os.Getenv("CTX_ROOT"),
			Home:       os.Getenv("HOME"),
			DataHome:   os.Getenv("XDG_DATA_HOME"),
			RuntimeDir: os.Getenv("XDG_RUNTIME_DIR"),
			ConfigHome: os.Getenv("XDG_CONFIG_HOME"),
			UID:        os.Getuid(),
		},
		Home:    os.Getenv("CTX_HOME"),
		Path:    os.Getenv("CTX_PATH"),
		Agent:   os.Getenv("CTX_AGENT"),
		Session: os.Getenv("CTX_SESSION"),
		Run:     os.Getenv("CTX_RUN_ID"),
		Environ: os.Environ(),
	}
	if filepath.IsAbs(s.Paths.Home) {
		s.History = filepath.Join(s.Paths.Home, ".tsh_history")
	}
	term := os.Getenv("TERM")
	s.Dumb = term == "" || term == "dumb"
	s.Color = !s.Dumb && os.Getenv("NO_COLOR") == ""
	return s
}
