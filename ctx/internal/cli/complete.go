package cli

import (
	"context"
	"slices"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/complete"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/paths"
	ucli "github.com/urfave/cli/v2"
)

func completeCommand() *command {
	return &command{
		name: "complete", args: "[WORD…]", input: true, short: "print what the last of these words can be, for shells",
		long: "The words are those of a command line, as far as it is typed, without the name\n" +
			"of the program; the last one may be empty. Each line is one possibility, and\n" +
			"behind a TAB what it is; the line :files or :directories stands for paths. The\n" +
			"completions of bash, zsh and fish ask this.",
		examples: []string{"ctx complete -- agent s", "ctx complete -- agent send --session ''"},
		run: func(ctx context.Context, from *caller.Caller, in *input) error {
			for _, c := range completions(ctx, from, in.args) {
				if _, err := from.Write([]byte(inert.Line(c.Word) + "\t" + inert.Line(c.Note) + "\n")); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// cursor is where on a command line the word is that is to be completed.
type cursor struct {
	program, command *command
	args             []string
	flag             ucli.Flag // whose value it is; nil: of none
	data             bool      // no word from here on is a flag
	root             string    // the value of --root
}

// completions are what the last of the words can be.
func completions(ctx context.Context, from *caller.Caller, words []string) []complete.Candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	last := words[len(words)-1]
	at := &cursor{program: table()}
	at.command = at.program
	for _, word := range words[:len(words)-1] {
		if !at.step(word) {
			return nil
		}
	}
	before := ""
	if name, value, given := strings.Cut(last, "="); given && at.flag == nil && !at.data && isFlag(last) {
		at.flag = at.find(name)
		before, last = name+"=", value
	} else if last == "=" && at.flag != nil { // bash takes such words apart
		last = ""
	}
	if at.root != "" {
		env := from.Config.Paths
		env.Flag = at.root
		l, err := paths.Find(env)
		if err != nil {
			return nil
		}
		from.Layout = l
	}
	var all []complete.Candidate
	for _, c := range at.candidates(ctx, from, last) {
		switch {
		case c.Word == complete.Files || c.Word == complete.Directories:
			all = append(all, c)
		case strings.HasPrefix(c.Word, last):
			c.Word = before + c.Word
			all = append(all, c)
		}
	}
	return all
}

// step goes over one word in front of the last; it reports whether the line makes
// sense so far.
func (at *cursor) step(word string) bool {
	switch {
	case at.flag != nil && word == "=": // bash takes --flag=value apart
	case at.flag != nil:
		if slices.Contains(at.flag.Names(), "root") {
			at.root = word
		}
		at.flag = nil
	case !at.data && word == "--":
		at.data = true
	case !at.data && isFlag(word):
		name, value, given := strings.Cut(word, "=")
		f := at.find(name)
		if f == nil {
			return word == "-h"
		}
		if given && name == "--root" {
			at.root = value
		}
		if _, isBool := f.(*ucli.BoolFlag); !isBool && !given {
			at.flag = f
		}
	case len(at.command.sub) > 0:
		if at.command = at.command.find(word); at.command == nil || at.data {
			return false
		}
	default:
		at.args = append(at.args, word)
		at.data = at.data || at.command.input && len(at.args) > at.command.fixed
	}
	return true
}

func (at *cursor) find(name string) ucli.Flag {
	name, ok := strings.CutPrefix(name, "--")
	if !ok {
		return nil
	}
	if f := lookup(at.command.flags, name); f != nil {
		return f
	}
	return lookup(at.program.flags, name)
}

// candidates are what the word can be, whatever it begins with; what is typed of
// it says whether it is to be a flag.
func (at *cursor) candidates(ctx context.Context, from *caller.Caller, typed string) []complete.Candidate {
	var all []complete.Candidate
	switch {
	case at.flag != nil:
		if kind := value(at.flag); kind != "PATH" { // those are paths as seen inside
			return complete.Of(ctx, from, kind, at.arg(0))
		}
		return nil
	case !at.data && strings.HasPrefix(typed, "-"):
		for _, row := range flagRows(append(at.command.flags[:len(at.command.flags):len(at.command.flags)], at.program.flags...)) {
			name, _, _ := strings.Cut(row[0], " ")
			if c := (complete.Candidate{Word: name, Note: row[1]}); !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
		return all
	case len(at.command.sub) > 0:
		for _, row := range commandRows(at.command) {
			all = append(all, complete.Candidate{Word: row[0], Note: row[1]})
		}
		return all
	}
	return complete.Of(ctx, from, at.kind(), at.arg(0))
}

func (at *cursor) arg(n int) string { return (&input{args: at.args}).arg(n) }

// kind is what help calls the word at the cursor.
func (at *cursor) kind() string {
	var kinds []string
	for _, word := range strings.Fields(at.command.args) {
		if word != "--" {
			kinds = append(kinds, strings.Trim(word, "[]"))
		}
	}
	if len(at.args) >= len(kinds) {
		return ""
	}
	kind := kinds[len(at.args)]
	if kind == "NAME" && at.command.name != "add" && at.program.find("provider").find(at.command.name) == at.command {
		return "PROVIDER"
	}
	return kind
}

// value is what help calls the value of a flag.
func value(f ucli.Flag) string {
	_, row, _ := strings.Cut(flagRows([]ucli.Flag{f})[0][0], " ")
	return row
}
