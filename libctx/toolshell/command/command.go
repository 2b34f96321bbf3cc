// Package command is the language of the tool shell: which words are builtins,
// what each takes, and how a typed line becomes words. It looks at nothing but
// its arguments. What builtins do is in package toolshell; every other first
// word names a tool.
package command

import (
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Builtin is one command of the shell itself.
type Builtin struct {
	Name  string
	Usage string // how it is written
	About string // what it does, a phrase
	flags []string
	min   int // operands
	max   int // operands, below zero without bound
}

var builtins = []Builtin{
	{"tools", "tools [GROUP] [-l | --json]", "list tools, and groups of tools such as fs.", []string{"-l", "--json"}, 0, 1},
	{"which", "which NAME…", "print the files that tools are", nil, 1, -1},
	{"type", "type NAME…", "say what a name means", nil, 1, -1},
	{"command", "command -v NAME…", "print what would be run", []string{"-v"}, 1, -1},
	{"help", "help [TOPIC | TOOL]", "explain the shell, a builtin or a tool", nil, 0, 1},
	{"load", "load TOOL…", "keep what a tool is and takes in the session", nil, 1, -1},
	{"unload", "unload TOOL…", "forget loaded tools", nil, 1, -1},
	{"loads", "loads", "list the loaded tools", nil, 0, 0},
	{"pin", "pin TOOL…", "load tools and never drop them by oneself", nil, 1, -1},
	{"unpin", "unpin TOOL…", "let pinned tools be dropped again", nil, 1, -1},
	{"pins", "pins", "list the pinned tools", nil, 0, 0},
	{"exit", "exit [CODE]", "end the shell, with a code from 0 to 255", nil, 0, 1},
	{"quit", "quit [CODE]", "the same as exit", nil, 0, 1},
}

// onTerminal are the builtins that a shell on a terminal has besides: they are
// about what it runs itself. No tool call is one of them.
var onTerminal = []Builtin{
	{"jobs", "jobs", "list what was stopped or runs in the background", nil, 0, 0},
	{"fg", "fg [N]", "go on with a job in the foreground", nil, 0, 1},
	{"bg", "bg [N]", "go on with a stopped job in the background", nil, 0, 1},
	{"kill", "kill [-SIGNAL] %N…", "send jobs a signal, TERM if none is named", nil, 1, -1},
	{"status", "status", "print the exit code of the last command", nil, 0, 0},
}

// Terminal lists the builtins that a shell on a terminal has besides.
func Terminal() []Builtin { return slices.Clone(onTerminal) }

// FindTerminal is the builtin of that name among Terminal.
func FindTerminal(name string) (Builtin, bool) { return find(onTerminal, name) }

// Builtins lists the builtins in the order of the help.
func Builtins() []Builtin { return slices.Clone(builtins) }

// Find is the builtin of that name.
func Find(name string) (Builtin, bool) { return find(builtins, name) }

func find(list []Builtin, name string) (Builtin, bool) {
	i := slices.IndexFunc(list, func(b Builtin) bool { return b.Name == name })
	if i < 0 {
		return Builtin{}, false
	}
	return list[i], true
}

// Is reports whether a first word is a builtin rather than the name of a tool.
func Is(word string) bool {
	_, ok := Find(word)
	return ok
}

// Command is one builtin with what it was given.
type Command struct {
	Name   string
	Long   bool // tools -l
	JSON   bool // tools --json
	Words  []string
	Code   int    // of exit and quit
	Signal string // of kill, as written; "" if none is
}

// Parse reads the words of one of Builtins, its name first, as Builtin.Parse does.
func Parse(words []string) (Command, error) {
	if len(words) == 0 {
		return Command{}, errdefs.New(errdefs.Invalid, "no command")
	}
	b, ok := Find(words[0])
	if !ok {
		return Command{}, errdefs.New(errdefs.Invalid, "%.80q is no builtin", words[0])
	}
	return b.Parse(words[1:])
}

// Parse reads the words behind the name of a builtin. Flags may stand before or
// behind the operands, words behind "--" are operands. -h and --help make it the
// command that explains the builtin. Wrong usage is errdefs.Invalid with the right
// one as hint.
func (b Builtin) Parse(rest []string) (Command, error) {
	c := Command{Name: b.Name}
	wrong := func(format string, args ...any) (Command, error) {
		err := errdefs.New(errdefs.Invalid, format, args...)
		err.Text = b.Name + ": " + err.Text
		return Command{}, err.WithHint("usage: %s", b.Usage)
	}
	verbose := false
	for i, w := range rest {
		if w == "--" {
			c.Words = append(c.Words, rest[i+1:]...)
			break
		}
		if len(w) < 2 || w[0] != '-' {
			c.Words = append(c.Words, w)
			continue
		}
		if w == "-h" || w == "--help" {
			return Command{Name: "help", Words: []string{b.Name}}, nil
		}
		if b.Name == "kill" && c.Signal == "" && w[1] != '-' {
			c.Signal = w[1:]
			continue
		}
		if !slices.Contains(b.flags, w) {
			return wrong("%.80q is none of its flags", w)
		}
		switch w {
		case "-l":
			c.Long = true
		case "--json":
			c.JSON = true
		case "-v":
			verbose = true
		}
	}
	switch n := len(c.Words); {
	case b.Name == "command" && !verbose:
		return wrong("only command -v is offered")
	case n < b.min:
		return wrong("a name is missing")
	case b.max >= 0 && n > b.max:
		return wrong("%.80q is one word too many", c.Words[b.max])
	}
	if b.Name == "exit" || b.Name == "quit" {
		return c.exit(wrong)
	}
	return c, nil
}

// exit reads the code.
func (c Command) exit(wrong func(string, ...any) (Command, error)) (Command, error) {
	c.Name = "exit"
	if len(c.Words) == 0 {
		return c, nil
	}
	n, err := strconv.ParseUint(c.Words[0], 10, 8)
	if err != nil || strings.HasPrefix(c.Words[0], "+") {
		return wrong("%.80q is no code from 0 to 255", c.Words[0])
	}
	c.Code = int(n)
	c.Words = nil
	return c, nil
}
