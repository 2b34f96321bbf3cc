// Package sandbox is the sandbox recipe as data: what a program may see and
// use (Spec), turned into bubblewrap's arguments (Args), the command line of the
// first step inside (Entry) and what that step is asked for (Request). Nothing
// here touches the system, so that every argument can be compared with a golden
// file; docs/reference/sandbox.md describes the result.
package sandbox

import (
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/mount"
)

// Kind is what a sandbox is for. The recipe is the same for all; the kind is
// for people who look at processes and logs.
type Kind int

// The kinds.
const (
	Tool     Kind = iota // one tool call
	Agent                // one step of an executable agent
	Terminal             // a terminal of a human
	Hook                 // one hook of a call
)

func (k Kind) String() string {
	switch k {
	case Tool:
		return "tool"
	case Agent:
		return "agent"
	case Terminal:
		return "terminal"
	case Hook:
		return "hook"
	}
	return "unknown"
}

// Spec describes one sandbox. All host paths are absolute and free of symbolic
// links; whoever fills them in has checked that the agent may use them.
type Spec struct {
	Kind     Kind
	Identity asuser.Identity
	UserName string // account name of the identity; "" if it has none

	View      string      // host directory shown read-only at /ctx; holds empty files bin/ctxtool, bin/tsh and bin/ctxterm
	Tools     string      // host path of the ctxtool program, shown at /ctx/bin/ctxtool
	Tsh       string      // host path of tsh, shown at /ctx/bin/tsh; "" shows none
	Ctxterm   string      // host path of ctxterm, shown at /ctx/bin/ctxterm; "" shows none
	Home      string      // host agent home, writable at /home/agent except its session/, which must exist
	Workspace Workspace   // from workspace.Resolve
	Mounts    mount.Table // extra lines only, with host paths as sources
	Control   string      // host path of the run's control socket; "" shows none
	Network   bool        // share the host's network
	Expect    []Expect    // objects the entry step must find, besides those of Workspace
	Limits    Limits

	// What a request carries. Everything above but Kind is fixed by the launch.
	Env  []string // complete environment, KEY=VALUE
	Cwd  string   // inside path the payload starts in; "" is /workspace
	Argv []string // payload as seen inside, Argv[0] an absolute path
}

// Workspace is a directory of the human, shown at /workspace.
type Workspace struct {
	Dir      string // canonical host path
	Dev, Ino uint64 // its identity when it was checked
	Frozen   bool   // shown read-only as a whole
	ReadOnly []Bind // what must not be changed: repository metadata, protected files
	Links    []Link
}

// Bind shows the host object Source read-only at Target, if it still is the
// object that was checked.
type Bind struct {
	Source, Target string
	Dev, Ino       uint64
}

// Link is a symbolic link made in the sandbox.
type Link struct{ Target, At string }

// Expect is an object that must be found at an inside path: a host path may
// have been made to lead elsewhere between its check and its use.
type Expect struct {
	Path     string
	Dev, Ino uint64
	// ReadOnly is whether the mount it is on must be. A mount vanishes when
	// another object is renamed over its place on the host, and with it the
	// protection, even if the same object comes back there.
	ReadOnly bool
}

// Limits bound what one sandbox uses. Zero members mean the values of
// libctx/limits.go.
type Limits struct {
	Processes uint64 // processes and threads of the sandbox
	OpenFiles uint64 // descriptors of one process
	FileBytes uint64 // bytes of one file that a process writes
}
