package program

import (
	"strings"
	"testing"
)

const ours = `ctx agent send [FLAGS] AGENT [INPUT…|-]

  Send input to an agent.

  The words of INPUT are joined
  by one space.

  Another paragraph.

Flags
  --session S                the session S
  --allow 'CLASS:NAME PERM'  more policy

Examples
  ctx agent send counter hello

Flags of every command: ctx --help
`

const theirs = `NAME:
   ctxd agent - serve one agent

USAGE:
   ctxd agent [command options] NAME

VERSION:
   0.1.0

DESCRIPTION:
   Takes a socket,
   else makes one.

      ctxd agent coder

OPTIONS:
   --idle D                  end after D (default: 0s)
   --mount A:B [ --mount A:B ]  show B
   --help, -h                show help
`

func TestParse(t *testing.T) {
	c, names, err := parse("ctx agent send", ours)
	if err != nil || len(names) != 0 {
		t.Fatal(names, err)
	}
	if c.Usage[0] != "[FLAGS] AGENT [INPUT…|-]" || c.Short != "send input to an agent" || strings.Join(c.Long, "\n") != "The words of INPUT are joined by one space.\nAnother paragraph." {
		t.Errorf("%+v", c)
	}
	if len(c.Flags) != 2 || c.Flags[1].Value != "'CLASS:NAME PERM'" || c.Flags[1].Text != "more policy" || len(c.Examples) != 1 {
		t.Errorf("%+v", c)
	}

	c, _, err = parse("ctxd agent", theirs)
	if err != nil {
		t.Fatal(err)
	}
	if c.Usage[0] != "[FLAGS] NAME" || c.Short != "serve one agent" || c.Long[0] != "Takes a socket, else makes one." || c.Examples[0] != "ctxd agent coder" {
		t.Errorf("%+v", c)
	}
	if f := c.Flags; len(f) != 3 || f[0].Text != "end after D" || f[1].Value != "A:B" || f[1].Text != "show B (repeatable)" || f[2].Names[1] != "-h" {
		t.Errorf("%+v", c.Flags)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "\n", "ctx\n", "NAME:\n   ctx - x\nUSAGE:\n   ctx\nOPTIONS:\n   nonsense\n", "NAME:\n   ctx - x\nUSAGE:\n   ctx\nOPTIONS:\n   --flag\n"} {
		if c, _, err := parse("ctx", text); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(ours)
	f.Add(theirs)
	f.Fuzz(func(t *testing.T, text string) {
		c, _, err := parse("ctx", text)
		if err == nil && (c.Short == "" || len(c.Usage) == 0) {
			t.Errorf("%+v", c)
		}
	})
}
