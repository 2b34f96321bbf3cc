package program

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// LoadShell asks tsh or ctxtool, whose help is rows without heads: forms of
// usage, flags, and what they have instead of commands of their own, builtins and
// tools.
func LoadShell(dir, name string) (*Command, error) {
	text, err := exec.Command(filepath.Join(dir, name), "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --help: %w", name, err)
	}
	c := &Command{Words: name}
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		first, second := row(trimmed)
		switch {
		case strings.HasPrefix(line, name+" "):
			c.use(first)
		case second == "" && !strings.HasPrefix(trimmed, "--"):
			if trimmed != "" {
				c.Long = append(c.Long, trimmed)
			}
		case strings.HasPrefix(trimmed, "--"):
			if second == "" {
				second = "print this, and end"
			}
			f, err := flag(first + "  " + second)
			if err != nil {
				return nil, fmt.Errorf("%s --help: %w", name, err)
			}
			c.Flags = append(c.Flags, f)
		default:
			word, rest, _ := strings.Cut(first, " ")
			sub := &Command{Words: word, Short: second, Usage: []string{rest}}
			c.Commands = append(c.Commands, sub)
		}
	}
	if len(c.Usage) == 0 || len(c.Commands) == 0 {
		return nil, fmt.Errorf("%s --help is not understood", name)
	}
	return c, nil
}
