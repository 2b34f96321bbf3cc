// Package program asks the suite's programs what commands and flags they have.
// What they say with --help is the one source: the help is made from the tables
// that the programs run by, and everything here is read back from it. Help that
// is not understood is an error, so that no page loses a flag in silence.
package program

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Command is a program or one of its commands.
type Command struct {
	Words    string   // what is typed, "ctx agent send"
	Usage    []string // what stands behind the words, one form each
	Short    string   // one sentence, without its full stop
	Long     []string // paragraphs
	Examples []string // lines
	Flags    []Flag
	Commands []*Command // in the order of the help
}

// Flag is one flag.
type Flag struct {
	Names []string // with dashes, the long one first
	Value string   // the name of the value; "" for a switch
	Text  string
}

// Find is the command below c that those words name, c itself for its own.
func (c *Command) Find(words string) *Command {
	if c.Words == words {
		return c
	}
	for _, s := range c.Commands {
		if s.Words == words || strings.HasPrefix(words, s.Words+" ") {
			return s.Find(words)
		}
	}
	return nil
}

// Load asks a program in the folder dir, and each of its commands.
func Load(dir, name string) (*Command, error) {
	return load(filepath.Join(dir, name), []string{name})
}

func load(path string, words []string) (*Command, error) {
	text, err := exec.Command(path, append(words[1:], "--help")...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w", strings.Join(words, " "), err)
	}
	c, names, err := parse(strings.Join(words, " "), string(text))
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w", strings.Join(words, " "), err)
	}
	for _, name := range names {
		sub, err := load(path, append(words[:len(words):len(words)], name))
		if err != nil {
			return nil, err
		}
		c.Commands = append(c.Commands, sub)
	}
	return c, nil
}
