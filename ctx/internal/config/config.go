// Package config is the only place of ctx that reads the environment: who calls
// it, where, on what kind of terminal, and what a daemon that ctx starts may
// know of that.
package config

import (
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/paths"
	"golang.org/x/term"
)

// Config is what the surroundings say. It is read once, at start.
type Config struct {
	Paths   paths.Env // without the --root flag
	CTXPath string    // CTX_PATH: where `ctx tool` looks without an agent
	Cwd     string    // the caller's directory; "" if it is gone
	Exe     string    // this executable, links resolved; "" if unknown
	Daemon  []string  // the environment of a daemon that ctx starts

	Stdin, Stdout, Stderr bool   // whether each is a terminal
	Color                 bool   // whether stdout takes colour
	Term                  string // the type of the terminal, if there is one
	Dumb                  bool   // the terminal, if there is one, can not move its cursor

	Editor string // the command line of the caller's editor
	Pager  Pager
	State  string // where programs keep what is worth keeping between runs; "" if unknown
}

// Pager is the program by which the caller reads long output.
type Pager struct {
	Command string   // a command line; "" for none
	Env     []string // what it needs in its environment beside what is there
	Chosen  bool     // by the caller
}

// pager is git's: PAGER, and without it less, told to end by itself where all
// fits on the screen, to pass colours on, and to leave the screen as it is.
func (c Config) pager() Pager {
	var p Pager
	p.Command, p.Chosen = os.LookupEnv("PAGER")
	if !p.Chosen {
		p.Command = "less"
	}
	if p.Command = strings.TrimSpace(p.Command); p.Command == "cat" || c.Dumb {
		p.Command = ""
	}
	if _, set := os.LookupEnv("LESS"); !set {
		p.Env = append(p.Env, "LESS=FRX")
	}
	return p
}

// History is the file in which the lines are kept that were written to an
// agent, "" for none.
func (c Config) History(a libctx.Agent) string {
	if c.State == "" {
		return ""
	}
	return filepath.Join(c.State, "cortexfs", "history", string(a))
}

// passed lists what a daemon started by ctx gets to see: where things are, and
// nothing that could be a secret.
var passed = []string{"HOME", "USER", "LOGNAME", "PATH", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "CTX_ROOT"}

// Load reads the environment of this process.
func Load() Config {
	c := Config{
		Paths: paths.Env{
			CTXRoot:    os.Getenv("CTX_ROOT"),
			Home:       os.Getenv("HOME"),
			DataHome:   absolute(os.Getenv("XDG_DATA_HOME")),
			RuntimeDir: absolute(os.Getenv("XDG_RUNTIME_DIR")),
			ConfigHome: absolute(os.Getenv("XDG_CONFIG_HOME")),
			UID:        os.Geteuid(),
		},
		CTXPath: os.Getenv("CTX_PATH"),
		Stdin:   term.IsTerminal(int(os.Stdin.Fd())),
		Stdout:  term.IsTerminal(int(os.Stdout.Fd())),
		Stderr:  term.IsTerminal(int(os.Stderr.Fd())),
	}
	c.Term = os.Getenv("TERM")
	c.Color = c.Stdout && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
	c.Dumb = os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == ""
	for _, c.Editor = range []string{os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"} {
		if strings.TrimSpace(c.Editor) != "" {
			break
		}
	}
	c.Pager = c.pager()
	c.State = absolute(os.Getenv("XDG_STATE_HOME"))
	if home := absolute(os.Getenv("HOME")); c.State == "" && home != "" {
		c.State = filepath.Join(home, ".local/state")
	}
	c.Cwd, _ = os.Getwd()
	if exe, err := os.Readlink("/proc/self/exe"); err == nil {
		c.Exe = exe
	}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok && (!strings.HasPrefix(name, "XDG_") || absolute(v) != "") {
			c.Daemon = append(c.Daemon, name+"="+v)
		}
	}
	return c
}

// absolute drops values that the base directory rules tell programs to ignore.
func absolute(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}
