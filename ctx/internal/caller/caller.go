// Package caller is what every command knows of the one who calls it: streams,
// surroundings, the tree that is meant, and the way to its agents.
package caller

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/client"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/tree"
)

// Caller is passed to every command.
type Caller struct {
	*output.Printer
	In     io.Reader
	Config config.Config
	Layout paths.Layout

	// Interrupts delivers the caller's Ctrl+C until stop is called.
	Interrupts func() (c <-chan os.Signal, stop func())
}

// Dial connects to an agent. In user mode it brings up what listens, if nothing
// does.
func (c *Caller) Dial(ctx context.Context, a libctx.Agent) (*client.Conn, error) {
	d := client.Dialer{Layout: c.Layout}
	if activator.Own(c.Layout) {
		d.Start = (&activator.Activator{Layout: c.Layout, Exe: c.Config.Exe, Env: c.Config.Daemon}).Start
	}
	return d.Dial(ctx, a)
}

// Place is where the sessions of an agent are.
func (c *Caller) Place(a libctx.Agent) (session.Place, error) {
	uid, err := tree.Owner(c.Layout, a)
	if err != nil {
		return session.Place{}, err
	}
	owner := asuser.Self()
	if owner.UID != uid {
		if owner.UID != 0 {
			return session.Place{}, errdefs.New(errdefs.Denied, "agent %s: belongs to uid %d", a, uid)
		}
		if owner, _, err = asuser.Lookup(uid); err != nil {
			return session.Place{}, err
		}
	}
	return session.Place{Layout: c.Layout, Agent: a, Owner: owner}, nil
}

// Session is the session that is meant: the one named, else the agent's current
// one, else the default.
func (c *Caller) Session(a libctx.Agent, named string) (libctx.Session, error) {
	if named != "" {
		return libctx.ParseSession(named)
	}
	place, err := c.Place(a)
	if err != nil {
		return "", err
	}
	s, err := place.Current()
	if errdefs.Is(err, errdefs.NotFound) || err == nil && s == "" {
		return libctx.DefaultSession, nil
	}
	return s, err
}

// ReadText reads all of standard input as text, at most max bytes. More is
// errdefs.TooBig; bytes that are not text are errdefs.Invalid.
func (c *Caller) ReadText(max int) (string, error) {
	b, err := io.ReadAll(io.LimitReader(c.In, int64(max)+1))
	switch {
	case err != nil:
		return "", errdefs.New(errdefs.IO, "standard input: %w", err)
	case len(b) > max:
		return "", errdefs.New(errdefs.TooBig, "standard input: longer than %d bytes", max)
	case !utf8.Valid(b):
		return "", errdefs.New(errdefs.Invalid, "standard input: is not UTF-8 text")
	}
	return string(b), nil
}

// Input is what the words of a command say: they themselves, one space between
// them; for "-" alone, and for no word where standard input is no terminal, what is
// on standard input; for "-" behind other words these, and below an empty line what
// is on standard input. alone: no word is in it. Standard input is bound as by
// ReadText; no input is errdefs.Invalid.
func (c *Caller) Input(words []string, max int) (text string, alone bool, err error) {
	last := len(words) - 1
	switch {
	case last < 0 && c.Config.Stdin:
		return "", false, errdefs.New(errdefs.Invalid, "no input").WithHint("give words, or - to read standard input")
	case last >= 0 && words[last] != "-":
		text = strings.Join(words, " ")
	default:
		if text, err = c.ReadText(max); err != nil {
			return "", false, err
		}
		if alone = last <= 0; alone {
			break
		}
		said := strings.Join(words[:last], " ")
		if text != "" {
			said += "\n\n" + text
		}
		text = said
	}
	if text == "" {
		return "", alone, errdefs.New(errdefs.Invalid, "input: is empty")
	}
	return text, alone, nil
}

// ErrInterrupt is the cause of a context that Ctrl+C ended.
var ErrInterrupt error = errdefs.New(errdefs.Cancelled, "interrupted")

// Abs is a path of the caller's as an absolute one.
func (c *Caller) Abs(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Config.Cwd, path)
	}
	return filepath.Clean(path)
}
