package admit

import (
	"io/fs"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/policy"
	"github.com/go-json-experiment/json/jsontext"
)

// Shell is the tool through which every other tool can be called. It is part of
// the runtime: the agent's policy decides about it, no file does.
const Shell libctx.Tool = "tsh"

// Agent is what admission knows of an agent, read afresh for every call.
type Agent struct {
	Name     libctx.Agent
	Subject  libctx.Subject
	Identity asuser.Identity // as whom its tools run
	Declared []libctx.Tool   // the tools control
	Path     []string        // inside directories, in lookup order
	Mounts   mount.Table
	Perm     control.Perm
	Policy   policy.Policy
	Effects  string // the effects control: "unsafe-host", "controlled", "controlled-bash-approval"
	Approval string // the approval control: "auto" or "ask"
}

// Kind is what a lookup on CTX_PATH found under the name of a tool.
type Kind int

// The kinds of a lookup's result.
const (
	Missing   Kind = iota // nothing has that name
	Irregular             // something has it that must not be run; Tool.Obstacle says what
	Regular               // a regular file
)

// Tool is what admission knows of the file behind a tool's name. The zero value
// is a tool that was not found.
type Tool struct {
	Name     libctx.Tool
	Kind     Kind
	Path     string // inside path of what was found
	Obstacle string // why it must not be run, if Irregular

	Mode     fs.FileMode // permission bits
	UID, GID uint32

	// Schema is the text of the schema file, nil if there is none; SchemaError
	// is why the file that is there could not be read.
	Schema      []byte
	SchemaError string

	Effect      control.Effect // declared class; "" is unknown
	EffectError string         // why the class is unknown though there is a file

	CLIOnly bool // mode cli: takes only the command-line form

	// HasPolicy: there is a policy file, which must then name the subject.
	// PolicyError is why it can not be believed.
	HasPolicy   bool
	Policy      policy.Policy
	PolicyError string
}

// Call is one tool call, from whatever source.
type Call struct {
	Name      libctx.Tool
	Arguments jsontext.Value // as they came, never re-encoded
	Direct    bool           // false once the call was routed through tsh
	Session   libctx.Session // whose outputs it may read as if they lay in the workspace; may be empty
	Cwd       string         // inside directory where relative paths start; "" is the workspace
}
