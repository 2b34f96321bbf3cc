package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/wire"
)

// each calls do for every operand, of which there must be one at least, and
// returns the first error after having tried all.
func each(c *cli.Context, do func(name string) error) error {
	if c.NArg() == 0 {
		return errdefs.New(errdefs.Invalid, "%s: a name is missing", c.Command.Name)
	}
	var first error
	for _, name := range c.Args().Slice() {
		if err := do(name); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// printf writes data lines, made inert.
func (sh *shell) printf(format string, args ...any) error {
	_, err := fmt.Fprint(sh.out, inert.Text(fmt.Sprintf(format, args...)))
	return err
}

func (sh *shell) which(c *cli.Context) error {
	return each(c, func(name string) error {
		hit, err := sh.find(name)
		if err != nil {
			return err
		}
		return sh.printf("%s\n", hit.Path)
	})
}

func (sh *shell) typeOf(c *cli.Context) error {
	return each(c, func(name string) error {
		if builtins[name] {
			return sh.printf("%s is a tsh builtin\n", name)
		}
		hit, err := sh.find(name)
		if err != nil {
			return err
		}
		return sh.printf("%s is %s\n", name, hit.Path)
	})
}

func (sh *shell) command(c *cli.Context) error {
	if !c.Bool("v") {
		return errdefs.New(errdefs.Invalid, "command: only command -v NAME is offered")
	}
	return each(c, func(name string) error {
		if builtins[name] {
			return sh.printf("%s\n", name)
		}
		hit, err := sh.find(name)
		if err != nil {
			return err
		}
		return sh.printf("%s\n", hit.Path)
	})
}

// entry is a line of tools --json.
type entry struct {
	Tool        string `json:"tool"`
	Path        string `json:"path"`
	Description string `json:"description"`
}

func (sh *shell) tools(c *cli.Context) error {
	if c.NArg() > 1 {
		return errdefs.New(errdefs.Invalid, "tools: %q is one word too many", c.Args().Get(1))
	}
	dirs, err := sh.dirs()
	if err != nil {
		return err
	}
	list, err := toolshell.List(dirs)
	if err != nil {
		return err
	}
	group := c.Args().First()
	if group != "" && !strings.HasSuffix(group, ".") {
		group += "."
	}
	last := ""
	for _, found := range list {
		rest, in := strings.CutPrefix(string(found.Name), group)
		if !in {
			continue
		}
		if c.Bool("l") || c.Bool("json") {
			err = sh.line(found, c.Bool("json"))
		} else if head, _, more := strings.Cut(rest, "."); !more {
			err = sh.printf("%s\n", found.Name)
		} else if head != last {
			last = head
			err = sh.printf("%s%s.\n", group, head)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// line shows one tool of a long listing. Descriptions that can not be read are
// empty: a listing is no place to fail for one tool.
func (sh *shell) line(found toolshell.Found, json bool) error {
	text, _ := sh.read(found.Hit, "description")
	about, _, _ := strings.Cut(wire.Clean([]byte(text)), "\n")
	if !json {
		return sh.printf("%s\t%s\t%s\n", found.Name, found.Path, strings.ReplaceAll(about, "\t", " "))
	}
	b, err := wire.Marshal(entry{string(found.Name), wire.Clean([]byte(found.Path)), about})
	if err != nil {
		return err
	}
	return sh.printf("%s", b)
}
