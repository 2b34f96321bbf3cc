// Package paths is the only place where paths of the tree, the runtime
// directory and the configuration are put together. A Layout is found once, at
// start, and passed on; nothing here reads the environment or touches a file
// except Find and New, which look whether a directory is a tree and where links
// lead.
package paths

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Where things are seen inside every sandbox, whatever their host path.
const (
	InRoot      = "/ctx"
	InHome      = "/home/agent"
	InSpill     = InHome + "/" + SpillDir // outputs that results have no room for, a directory a session
	InWorkspace = "/workspace"
	InSkills    = MachineConfig + "/skills" // skills of the machine, at the same place on the host
	InBin       = "/ctx/bin"
	SpillDir    = "cache/spill" // of InSpill, below an agent's home
)

// SkillDirs are where skills are below a home or a directory of a project.
func SkillDirs() []string { return []string{".agents/skills", ".codex/skills"} }

// MachineConfig holds the configuration of system mode, and in both modes the
// machine's rules and skills.
const MachineConfig = "/etc/cortexfs"

// The tree of system mode, and where it is kept: SystemRoot is a mount of
// SystemTree, which nobody but root can reach by that name.
const (
	SystemRoot  = "/ctx"
	SystemState = "/var/lib/cortexfs"
	SystemTree  = SystemState + "/tree"
)

// AdminSocket is where `ctxd admin` listens that changes a tree of root's for its
// users.
func AdminSocket(root string) string {
	return filepath.Join(New(Env{}, root).Runtime, "admin.sock")
}

// Layout is where one tree and everything that belongs to it lives on the host.
// All members are absolute and clean.
type Layout struct {
	Root    string // the tree
	Runtime string // sockets, 0700 in user mode, 0755 and root's in system mode
	Locks   string // lock files; in no sandbox's view
	Views   string // prepared views of agents (package view); on the tree's file system
	Config  string // holds providers.d and secrets; never mounted
	Secrets string
	// Terminals holds the sockets of the terminals this user starts, 0700: a
	// place that is easy to say for the tree of the machine and the user's own,
	// one below Runtime for any other tree.
	Terminals string
	System    bool // run by root for agents of many users
}

// Env is what Find needs to know of the caller; the programs' config packages
// fill it from flags and the environment. Relative XDG directories count as not
// set, as their specification wants.
type Env struct {
	Flag       string // --root
	CTXRoot    string // CTX_ROOT
	Home       string // HOME
	DataHome   string // XDG_DATA_HOME
	RuntimeDir string // XDG_RUNTIME_DIR
	ConfigHome string // XDG_CONFIG_HOME
	UID        int
}

// Find is the lookup of docs/reference/tree.md: the flag, CTX_ROOT, /ctx if it
// is a tree, then the user's own tree (which need not exist yet).
func Find(e Env) (Layout, error) {
	e = e.clean()
	root := e.Flag
	if root == "" {
		root = e.CTXRoot
	}
	if root == "" && IsTree(SystemRoot) {
		root = SystemRoot
	}
	if root == "" {
		if root = e.ownTree(); root == "" {
			return Layout{}, errdefs.New(errdefs.Invalid, "no tree: HOME is not set").
				WithHint("name the tree with --root or CTX_ROOT")
		}
	}
	if !filepath.IsAbs(root) {
		abs, err := filepath.Abs(root)
		if err != nil {
			return Layout{}, errdefs.New(errdefs.Invalid, "tree %q: %w", root, err)
		}
		root = abs
	}
	root = filepath.Clean(root)
	// One tree has one runtime directory, however its path was written.
	return New(e, resolved(root)), nil
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// ownTree is the user's own tree, "" without a home.
func (e Env) ownTree() string {
	switch {
	case e.DataHome != "":
		return filepath.Join(e.DataHome, "cortexfs")
	case e.Home != "":
		return filepath.Join(e.Home, ".local/share/cortexfs")
	}
	return ""
}

func (e Env) clean() Env {
	for _, dir := range []*string{&e.DataHome, &e.RuntimeDir, &e.ConfigHome} {
		if !filepath.IsAbs(*dir) {
			*dir = ""
		}
	}
	return e
}

// IsTree reports whether dir looks like a tree: it holds the status file and an
// agent directory.
func IsTree(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, "agent"))
	if err != nil || !st.IsDir() {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, "status"))
	return err == nil
}

// New is the layout of the tree at root for this caller.
func New(e Env, root string) Layout {
	e = e.clean()
	sum := sha256.Sum256([]byte(root))
	key := hex.EncodeToString(sum[:8])
	l := Layout{Root: root, Views: filepath.Join(root, ".view"), System: e.UID == 0}
	own := filepath.Join("/tmp", "cortexfs-"+strconv.Itoa(e.UID))
	if e.RuntimeDir != "" {
		own = filepath.Join(e.RuntimeDir, "cortexfs")
	}
	l.Terminals = filepath.Join(own, key, "terminal")
	if root == SystemRoot || root == resolved(e.ownTree()) {
		l.Terminals = filepath.Join(own, "terminal")
	}
	if l.System {
		base := "/run/cortexfs"
		l.Runtime = base
		l.Config, l.Secrets = MachineConfig, SystemState+"/secrets"
		if root != SystemRoot {
			l.Runtime = filepath.Join(base, key)
		}
		l.Locks = filepath.Join(l.Runtime, "lock")
		return l
	}
	config := e.ConfigHome
	if config == "" {
		config = filepath.Join(e.Home, ".config")
	}
	l.Runtime = filepath.Join(own, key)
	l.Locks = filepath.Join(root, ".lock")
	l.Config = filepath.Join(config, "cortexfs")
	l.Secrets = filepath.Join(l.Config, "secrets")
	return l
}

// Aside is the layout of a process that writes nothing of its own beside the
// tree, because that is somebody else's: its locks and views are in the runtime
// directory. They are no locks of sessions: those must be everybody's.
func (l Layout) Aside() Layout {
	l.Locks, l.Views = filepath.Join(l.Runtime, "lock"), filepath.Join(l.Runtime, "view")
	return l
}

// Protected lists the directories no workspace may be, contain or lead into:
// the tree, the runtime directory, the terminals' sockets, the configuration and
// the secrets.
func (l Layout) Protected() []string {
	dirs := []string{l.Root, l.Runtime, l.Terminals, l.Config, l.Secrets}
	if l.Root == SystemRoot {
		dirs = append(dirs, SystemState, New(Env{}, l.Root).Runtime)
	}
	return dirs
}

// Paths below the tree.

// Agents is the directory of all agents.
func (l Layout) Agents() string { return filepath.Join(l.Root, "agent") }

// Agent is the object of an agent: its executable.
func (l Layout) Agent(a libctx.Agent) string { return filepath.Join(l.Root, "agent", string(a)) }

// Control is the directory of an agent's control files.
func (l Layout) Control(a libctx.Agent) string { return l.Agent(a) + ".d" }

// AgentLink is where clients find an agent's socket: a link to Socket.
func (l Layout) AgentLink(a libctx.Agent) string { return l.Agent(a) + ".sock" }

// Tools is the directory of the tools everybody may find.
func (l Layout) Tools() string { return filepath.Join(l.Root, "tool") }

// Bin is a program of the suite as the tree names it.
func (l Layout) Bin(name string) string { return filepath.Join(l.Root, "bin", name) }

// Home is what belongs to one user in the tree.
func (l Layout) Home(uid uint32) string {
	return filepath.Join(l.Root, "home", strconv.FormatUint(uint64(uid), 10))
}

// AgentHome is the home of an agent of that owner; /home/agent in its sandboxes.
func (l Layout) AgentHome(uid uint32, a libctx.Agent) string {
	return filepath.Join(l.Home(uid), "agent", string(a))
}

// Sessions is the directory of an agent's private sessions.
func (l Layout) Sessions(uid uint32, a libctx.Agent) string {
	return filepath.Join(l.AgentHome(uid, a), "session")
}

// Session is the directory of one private session.
func (l Layout) Session(uid uint32, a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Sessions(uid, a), string(s))
}

// Paths of terminals (docs/reference/terminal.md).

// TerminalID names the terminal of a session. Two sessions can have the same
// one: a-b with c, and a with b-c.
func TerminalID(a libctx.Agent, s libctx.Session) string {
	return "terminal-" + string(a) + "-" + string(s)
}

// TerminalResource is the directory in which a terminal outlives its process.
func (l Layout) TerminalResource(uid uint32, a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Session(uid, a, s), "terminal", TerminalID(a, s))
}

// TerminalLink is where clients find a terminal's socket: a link to
// TerminalSocket of whoever started it.
func (l Layout) TerminalLink(uid uint32, a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Session(uid, a, s), "terminal", "main.sock")
}

// TerminalDir holds the socket of one terminal.
func (l Layout) TerminalDir(a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Terminals, string(a), string(s))
}

// TerminalSocket is where a terminal listens.
func (l Layout) TerminalSocket(a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.TerminalDir(a, s), "main.sock")
}

// TerminalLock is held by the launcher of a terminal as long as it lives. It is
// the tree's, not the runtime directory's: a session has one terminal, whatever
// environment it is started from.
func (l Layout) TerminalLock(a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Locks, "terminal:"+string(a)+":"+string(s))
}

// TerminalLog is what the launcher of a terminal writes where no supervisor has a
// journal.
func (l Layout) TerminalLog(a libctx.Agent, s libctx.Session) string {
	return filepath.Join(l.Runtime, "terminal:"+string(a)+":"+string(s)+".log")
}

// Paths below the runtime directory.

// Sockets is the directory of the agents' sockets.
func (l Layout) Sockets() string { return filepath.Join(l.Runtime, "agent") }

// Socket is where an agent's server listens.
func (l Layout) Socket(a libctx.Agent) string {
	return filepath.Join(l.Runtime, "agent", string(a)+".sock")
}

// Runs is the directory of what belongs to runs. Nobody but its owner can list it.
func (l Layout) Runs() string { return filepath.Join(l.Runtime, "run") }

// Capabilities is the directory of the capability sockets of an agent's runs. Nobody
// but its owner can list it.
func (l Layout) Capabilities(a libctx.Agent) string { return filepath.Join(l.Runs(), string(a)) }

// ModelSocket is where ctxmodel listens.
func (l Layout) ModelSocket() string { return filepath.Join(l.Runtime, "model.sock") }

// ServeLog is the log of an activator that was started in the background.
func (l Layout) ServeLog() string { return filepath.Join(l.Runtime, "ctxd.log") }

// ServeLock is held by the activator of the tree as long as it runs.
func (l Layout) ServeLock() string { return filepath.Join(l.Locks, "serve") }

// StartLock is held by whoever is just starting the activator.
func (l Layout) StartLock() string { return filepath.Join(l.Locks, "start") }

// Paths of the configuration.

// Providers is the directory of the provider files.
func (l Layout) Providers() string { return filepath.Join(l.Config, "providers.d") }

// Keys is the directory of the keys, a directory below it for each provider.
func (l Layout) Keys() string { return filepath.Join(l.Secrets, "provider") }

// View is the directory of an agent's prepared views.
func (l Layout) View(a libctx.Agent) string { return filepath.Join(l.Views, string(a)) }

// HostPath turns an inside path at or below /ctx into its host path; other
// paths come back as they are.
func (l Layout) HostPath(inside string) string {
	if inside == InRoot {
		return l.Root
	}
	if rest, ok := cutDir(inside, InRoot); ok {
		return filepath.Join(l.Root, rest)
	}
	return inside
}

// cutDir returns what follows dir in p if p lies below dir.
func cutDir(p, dir string) (string, bool) {
	if len(p) > len(dir)+1 && p[:len(dir)] == dir && p[len(dir)] == '/' {
		return p[len(dir)+1:], true
	}
	return "", false
}

// Below reports whether p is dir or lies below it. Both must be clean.
func Below(p, dir string) bool {
	if p == dir || dir == "/" {
		return true
	}
	_, ok := cutDir(p, dir)
	return ok
}
