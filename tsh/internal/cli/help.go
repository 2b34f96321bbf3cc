package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"
)

func (sh *shell) help(c *cli.Context) error {
	switch c.NArg() {
	case 0:
		return cli.ShowAppHelp(c)
	case 1:
	default:
		return errdefs.New(errdefs.Invalid, "help: %q is one word too many", c.Args().Get(1))
	}
	name := c.Args().First()
	if builtins[name] {
		return cli.ShowCommandHelp(c.Lineage()[1], name)
	}
	hit, err := sh.find(name)
	if err != nil {
		return err
	}
	about, err := sh.read(hit, "description")
	if err != nil {
		return err
	}
	schema, err := sh.read(hit, "schema")
	if err != nil {
		return err
	}
	return sh.printf("%s\n%s\n\n%s\n%s", name, hit.Path, strings.TrimSpace(about), summary(schema))
}

// summary is what a person needs of an argument schema: the members, one a
// line. A schema of another form has none.
func summary(schema string) string {
	var s struct {
		Properties map[string]struct {
			Type        jsontext.Value `json:"type"`
			Description string         `json:"description"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := wire.Object([]byte(schema), &s); err != nil || len(s.Properties) == 0 {
		return ""
	}
	text := "\n"
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		kind := strings.Trim(string(p.Type), `"`)
		if slices.Contains(s.Required, name) {
			kind += ", required"
		}
		text += fmt.Sprintf("  %s (%s)  %s\n", name, kind, p.Description)
	}
	return text
}
