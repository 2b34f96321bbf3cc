package sessions

import (
	"errors"
	"io"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// HistoryOptions are the flags of `ctx agent history`.
type HistoryOptions struct {
	Session   string // "": the agent's current one
	Raw       bool   // the lines of the ledger
	Reasoning bool   // what a model thought, too
	Full      bool   // results of tools whole
}

// read opens a session for reading. One that does not exist is
// errdefs.NotFound.
func read(from *caller.Caller, a libctx.Agent, named string) (*session.Reader, error) {
	name, err := from.Session(a, named)
	if err != nil {
		return nil, err
	}
	place, err := from.Place(a)
	if err != nil {
		return nil, err
	}
	r, err := place.Read(name)
	if errdefs.Is(err, errdefs.NotFound) {
		return nil, errdefs.New(errdefs.NotFound, "agent %s: no session %q", a, name).
			WithHint("ctx agent sessions %s lists them", a)
	}
	return r, err
}

// History prints the conversation of a session as people read it, with what
// became of its runs, or the lines of its ledger. Damage is reported beside it,
// with its line, and makes the command fail at the end.
func History(from *caller.Caller, a libctx.Agent, o HistoryOptions) error {
	r, err := read(from, a, o.Session)
	if err != nil {
		return err
	}
	defer r.Close()
	if o.Raw {
		return ledger(from, r)
	}
	p := page{Caller: from, HistoryOptions: o, runs: map[libctx.Run]bool{}}
	if !from.JSON {
		if p.notes, err = notes(r); err != nil {
			return err
		}
	}
	var damage error
	for e, err := range r.Branch() {
		if err != nil {
			from.Warn(notice(err))
			damage = err
			continue
		}
		p.entry(e)
		if from.Failed() != nil {
			break
		}
	}
	p.until(1<<63 - 1)
	if err := from.Failed(); err != nil {
		return err
	}
	return damaged(damage)
}

func ledger(from *caller.Caller, r *session.Reader) error {
	var damage error
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return damaged(damage)
		}
		if err != nil {
			return err
		}
		if line.Err != nil {
			damage = line.Err
			from.Warn(notice(line.Err))
		}
		if err := from.Line(append(line.Text, '\n')); err != nil {
			return err
		}
	}
}

// notice tells what can not be shown. What a newer version wrote is no damage.
func notice(err error) string {
	var unknown *session.UnknownTypeError
	if errors.As(err, &unknown) {
		return "not shown: " + err.Error()
	}
	return "damage: " + err.Error()
}

func damaged(err error) error {
	if err == nil {
		return nil
	}
	var unknown *session.UnknownTypeError
	if errors.As(err, &unknown) {
		return errdefs.New(errdefs.Unsupported, "the session was written by a newer version: %w", err)
	}
	return errdefs.New(errdefs.IO, "the session's ledger is damaged: %w", err)
}

// Output prints the latest assistant text of a session.
func Output(from *caller.Caller, a libctx.Agent, named string) error {
	r, err := read(from, a, named)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := r.Latest()
	if errdefs.Is(err, errdefs.NotFound) || err == nil && text == "" {
		return errdefs.New(errdefs.NotFound, "agent %s: said nothing yet in session %s", a, r.Info().Session)
	}
	if err != nil {
		return err
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return from.Text(text)
}
