package runs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// SendOptions are the flags of `ctx agent send`.
type SendOptions struct {
	Session   string // "": the agent's current one
	Scope     string
	Workspace string        // host directory, may be relative; "": the caller's
	Cwd       string        // inside path
	ID        string        // "": a fresh one
	Timeout   time.Duration // 0: none
	Raw       bool          // print the frames
	Approve   []string      // tools whose calls are allowed when the agent asks
}

// Send sends a person's input to an agent and shows the run until it is over.
// input is the words of the command line, as caller.Input takes them.
func Send(ctx context.Context, from *caller.Caller, a libctx.Agent, input []string, o SendOptions) error {
	text, err := inputText(from, input)
	if err != nil {
		return err
	}
	t, err := prepare(from, a, o.Session, o.ID, o.Workspace, o.Approve)
	if err != nil {
		return err
	}
	t.raw, t.temp = o.Raw, o.Scope == "temp"
	err = t.drive(ctx, &wire.Send{
		ID: t.id, Session: t.session, Scope: o.Scope, Workspace: t.workspace, Cwd: o.Cwd, Input: text,
	}, o.Timeout)
	if err != nil {
		return err
	}
	return t.outcome()
}

// inputText is the input, which an agent can take.
func inputText(from *caller.Caller, words []string) (string, error) {
	text, _, err := from.Input(words, libctx.MaxFrame)
	if err != nil {
		return "", err
	}
	if strings.ContainsRune(text, 0) {
		return "", errdefs.New(errdefs.Invalid, "input: holds a NUL character")
	}
	return text, nil
}

// Directory is the absolute path of a workspace that the caller named, "" for the
// directory they are in: it is one (else errdefs.Invalid). That it may be used is the
// daemon's to say.
func Directory(from *caller.Caller, dir string) (string, error) {
	switch {
	case dir == "" && from.Config.Cwd == "":
		return "", errdefs.New(errdefs.Invalid, "workspace: the current directory is gone").
			WithHint("name one with --workspace")
	case dir == "":
		return from.Config.Cwd, nil
	case !filepath.IsAbs(dir):
		dir = filepath.Join(from.Config.Cwd, dir)
	}
	dir = filepath.Clean(dir)
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", errdefs.New(errdefs.Invalid, "workspace %s: %w", dir, unwrapPath(err))
	case !st.IsDir():
		return "", errdefs.New(errdefs.Invalid, "workspace %s: is not a directory", dir)
	}
	return dir, nil
}
