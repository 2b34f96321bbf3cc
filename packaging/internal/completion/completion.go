// Package completion makes the completions of the suite's programs for bash, zsh
// and fish. ctx completes itself, its scripts only ask it; those of the programs
// that people seldom type are tables of their commands and flags.
package completion

import (
	"embed"
	"fmt"
	"strings"

	"cortexfs.org/packaging/internal/program"
)

//go:embed all:scripts
var scripts embed.FS

// shells are the folders of scripts, and what a file of them is called.
var shells = map[string]func(name string) string{
	"bash": func(name string) string { return name },
	"zsh":  func(name string) string { return "_" + name },
	"fish": func(name string) string { return name + ".fish" },
}

// Scripts are the completions of the programs, by shell and file name.
func Scripts(suite []*program.Command) (map[string]string, error) {
	all := map[string]string{}
	for shell, file := range map[string]string{"bash": "ctx.bash", "zsh": "_ctx", "fish": "ctx.fish"} {
		text, err := scripts.ReadFile("scripts/" + file)
		if err != nil {
			return nil, err
		}
		all[shell+"/"+shells[shell]("ctx")] = string(text)
	}
	for _, c := range suite {
		if c.Words == "ctx" || c.Words == "ctxtool" { // nobody types the latter
			continue
		}
		all["bash/"+shells["bash"](c.Words)] = bash(c)
		all["zsh/"+shells["zsh"](c.Words)] = zsh(c)
		all["fish/"+shells["fish"](c.Words)] = fish(c)
	}
	return all, nil
}

// name is the last of a command's words.
func name(c *program.Command) string {
	return c.Words[strings.LastIndex(c.Words, " ")+1:]
}

// typed are all words that can follow a command.
func typed(c *program.Command) string {
	var words []string
	for _, s := range c.Commands {
		words = append(words, name(s))
	}
	for _, f := range c.Flags {
		words = append(words, f.Names[0])
	}
	return strings.Join(words, " ")
}

func bash(c *program.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s in bash.\n_%[1]s() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} words=%q command\n", c.Words, typed(c))
	if len(c.Commands) > 0 && c.Words != "tsh" {
		b.WriteString("\tfor command in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n\t\tcase $command in\n")
		for _, s := range c.Commands {
			fmt.Fprintf(&b, "\t\t%s) words=%q ;;\n", name(s), typed(s))
		}
		b.WriteString("\t\tesac\n\tdone\n")
	}
	if c.Words == "tsh" {
		b.WriteString("\twords+=\" $(\"$1\" --list 2>/dev/null)\"\n")
	}
	fmt.Fprintf(&b, "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n}\ncomplete -o bashdefault -o default -F _%s %[1]s\n", c.Words)
	return b.String()
}

func zsh(c *program.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n# Completion of %[1]s in zsh.\nlocal command\nlocal -a found=(\n%s)\n", c.Words, zshRows(c))
	if len(c.Commands) > 0 && c.Words != "tsh" {
		b.WriteString("for command in \"${(@)words[2,CURRENT-1]}\"; do\n\tcase $command in\n")
		for _, s := range c.Commands {
			fmt.Fprintf(&b, "\t%s) found=(\n%s) ;;\n", name(s), zshRows(s))
		}
		b.WriteString("\tesac\ndone\n")
	}
	if c.Words == "tsh" {
		b.WriteString("found+=(\"${(@f)$(\"${words[1]}\" --list 2>/dev/null)}\")\n")
	}
	b.WriteString("_describe -V word found || _files\n")
	return b.String()
}

func zshRows(c *program.Command) string {
	var b strings.Builder
	row := func(word, text string) {
		fmt.Fprintf(&b, "\t'%s:%s'\n", word, strings.ReplaceAll(text, "'", `'\''`))
	}
	for _, s := range c.Commands {
		row(name(s), s.Short)
	}
	for _, f := range c.Flags {
		row(f.Names[0], f.Text)
	}
	return b.String()
}

func fish(c *program.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s in fish.\n", c.Words)
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	flags := func(of *program.Command, when string) {
		for _, f := range of.Flags {
			fmt.Fprintf(&b, "complete -c %s%s -l %s -d %s", c.Words, when, strings.TrimPrefix(f.Names[0], "--"), quote(f.Text))
			if f.Value != "" {
				b.WriteString(" -r")
			}
			b.WriteString("\n")
		}
	}
	flags(c, "")
	for _, s := range c.Commands {
		fmt.Fprintf(&b, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", c.Words, name(s), quote(s.Short))
		flags(s, fmt.Sprintf(" -n '__fish_seen_subcommand_from %s'", name(s)))
	}
	if c.Words == "tsh" {
		b.WriteString("complete -c tsh -n __fish_use_subcommand -a '(tsh --list 2>/dev/null)'\n")
	}
	return b.String()
}
