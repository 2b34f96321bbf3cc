package cli

import (
	"slices"
	"strings"

	"cortexfs.org/libctx/errdefs"
	ucli "github.com/urfave/cli/v2"
)

// line is a command line taken apart.
type line struct {
	path    []*command // the words that name the command, from the program down
	global  []string   // flags of the program, as --name=value
	flags   []string   // flags of the command, likewise
	args    []string   // everything else, in order
	help    bool
	version bool
}

// argv is the line in the order in which the flag parser takes it: flags of the
// program, names, flags of the command, then what is data and can be nothing
// else.
func (l *line) argv() []string {
	out := []string{l.path[0].name}
	out = append(out, l.global...)
	for _, c := range l.path[1:] {
		out = append(out, c.name)
	}
	out = append(out, l.flags...)
	return append(append(out, "--"), l.args...)
}

// reorder takes the arguments of the program apart, without the program's own
// name. Flags of the program may stand anywhere, those of the command anywhere
// behind it, up to "--" or, for a command with INPUT, the first word of the
// input: what follows is data, verbatim. Flags that nobody knows, or that lack
// their value, are errdefs.Invalid.
func reorder(program *command, args []string) (*line, error) {
	l := &line{path: []*command{program}}
	for i := 0; i < len(args); i++ {
		word := args[i]
		current := l.path[len(l.path)-1]
		switch {
		case word == "--":
			l.args = append(l.args, args[i+1:]...)
			return l, l.named()
		case isFlag(word):
			used, err := l.flag(word, args[i+1:])
			if err != nil {
				return nil, err
			}
			i += used
		case len(current.sub) > 0:
			if len(l.path) == 1 && word == "help" {
				l.help = true
				continue
			}
			next := current.find(word)
			if next == nil {
				return nil, unknownCommand(l, word)
			}
			l.path = append(l.path, next)
		case current.input && len(l.args) >= current.fixed:
			l.args = append(l.args, args[i:]...)
			return l, nil
		default:
			l.args = append(l.args, word)
		}
	}
	return l, l.named()
}

// named refuses data where a command is still to be named.
func (l *line) named() error {
	if current := l.path[len(l.path)-1]; len(current.sub) > 0 && len(l.args) > 0 {
		return unknownCommand(l, l.args[0])
	}
	return nil
}

// isFlag: a dash and something behind it that is not all dashes, so that "-"
// and the permission "---" are words.
func isFlag(word string) bool {
	return strings.HasPrefix(word, "-") && strings.Trim(word, "-") != ""
}

// flag takes one flag and reports how many of the words behind it are its
// value.
func (l *line) flag(word string, rest []string) (used int, err error) {
	if word == "-h" {
		l.help = true
		return 0, nil
	}
	name, value, given := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	current, program := l.path[len(l.path)-1], l.path[0]
	f, to := lookup(current.flags, name), &l.flags
	if f == nil {
		f, to = lookup(program.flags, name), &l.global
	}
	if current == program {
		to = &l.global
	}
	if f == nil || !strings.HasPrefix(word, "--") {
		return 0, l.unknownFlag(word)
	}
	if _, isBool := f.(*ucli.BoolFlag); isBool {
		if given && value != "true" && value != "false" {
			return 0, errdefs.New(errdefs.Invalid, "flag --%s: is on or off and takes no value", name)
		}
		on := value != "false"
		switch name {
		case "help":
			l.help = on
		case "version":
			l.version = on
		default:
			*to = append(*to, "--"+name+"="+map[bool]string{true: "true", false: "false"}[on])
		}
		return 0, nil
	}
	if !given {
		if len(rest) == 0 {
			return 0, errdefs.New(errdefs.Invalid, "flag --%s: needs a value", name)
		}
		value, used = rest[0], 1
	}
	*to = append(*to, "--"+name+"="+value)
	return used, nil
}

func lookup(flags []ucli.Flag, name string) ucli.Flag {
	for _, f := range flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

func (l *line) unknownFlag(word string) error {
	name, _, _ := strings.Cut(word, "=") // the value may be a secret
	err := errdefs.New(errdefs.Invalid, "unknown flag %s", name)
	if current := l.path[len(l.path)-1]; current.input && len(l.args) >= current.fixed {
		return err.WithHint("put -- before input that begins with a dash")
	}
	return err.WithHint("%s --help", l.words())
}

func unknownCommand(l *line, word string) error {
	return errdefs.New(errdefs.Invalid, "unknown command %q", word).WithHint("%s --help lists the commands", l.words())
}

// words is the command as it was typed, "ctx agent send".
func (l *line) words() string {
	names := make([]string, len(l.path))
	for i, c := range l.path {
		names[i] = c.name
	}
	return strings.Join(names, " ")
}

// what names the command in error messages: "agent send", "" for the program.
func (l *line) what() string {
	_, what, _ := strings.Cut(l.words(), " ")
	return what
}
