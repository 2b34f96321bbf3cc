package agents

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx/inert"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

// SessionEntry is one session of `ctx agent sessions`.
type SessionEntry struct {
	Session   libctx.Session `json:"session"`
	Current   bool           `json:"current"`
	State     string         `json:"state"`
	Updated   string         `json:"updated"` // RFC 3339, "" if unknown
	Turns     int64          `json:"turns"`
	Tokens    int64          `json:"tokens"`
	Cost      int64          `json:"cost_picodollars"`
	Workspace string         `json:"workspace"`
	Damage    string         `json:"damage"` // "" if none
}

// Sessions lists the sessions of an agent, newest first.
func Sessions(from *caller.Caller, a libctx.Agent) error {
	place, err := from.Place(a)
	if err != nil {
		return err
	}
	infos, err := place.List()
	if err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	current, err := from.Session(a, "")
	if err != nil {
		return err
	}
	var rows []output.Row
	for _, info := range infos {
		e := SessionEntry{
			Session: info.Session, Current: info.Session == current, State: info.State, Turns: info.Turns,
			Tokens: info.Tokens.Input + info.Tokens.CacheRead + info.Tokens.CacheWrite + info.Tokens.Output,
			Cost:   info.Cost, Workspace: info.Workspace, Damage: info.Damage,
		}
		updated := ""
		if !info.Updated.IsZero() {
			e.Updated = info.Updated.UTC().Format(time.RFC3339)
			updated = info.Updated.Local().Format(time.DateTime)
		}
		rows = append(rows, output.Row{
			Cells: []string{string(e.Session), e.State, updated, strconv.FormatInt(e.Turns, 10),
				strconv.FormatInt(e.Tokens, 10), dollars(e.Cost), e.Workspace},
			Object: e,
		})
		if e.Damage != "" {
			from.Warn(fmt.Sprintf("session %s: %s", e.Session, e.Damage))
		}
	}
	return from.Table([]string{"SESSION", "STATE", "UPDATED", "TURNS", "TOKENS", "COST", "WORKSPACE"}, rows)
}

// dollars shows a cost: picodollars as dollars, to a hundredth of a cent.
func dollars(pico int64) string { return fmt.Sprintf("$%.4f", float64(pico)/1e12) }

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

// History prints the conversation of a session as people read it, or with raw
// the lines of its ledger. Damage is reported beside it, with its line, and
// makes the command fail at the end.
func History(from *caller.Caller, a libctx.Agent, named string, raw bool) error {
	r, err := read(from, a, named)
	if err != nil {
		return err
	}
	defer r.Close()
	if raw {
		return ledger(from, r)
	}
	var damage error
	for e, err := range r.Branch() {
		if err != nil {
			from.Warn(notice(err))
			damage = err
			continue
		}
		entry(from, e)
		if from.Failed() != nil {
			break
		}
	}
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

// entry prints one entry of the conversation.
func entry(from *caller.Caller, e *session.Entry) {
	if e.Kind != session.KindMessage {
		return
	}
	if from.JSON {
		_ = from.Object(e)
		return
	}
	for i := range e.Content {
		p := &e.Content[i]
		switch p.Type {
		case "text":
			say(from, e.Role, p.Text)
		case "tool_call":
			say(from, "call", string(p.Name)+" "+render.Arguments(p.Arguments, 200))
		case "tool_result":
			say(from, "result", p.Text)
		}
	}
}

// say prints one piece with who said it: the first line behind the speaker, the
// others below it.
func say(from *caller.Caller, who, text string) {
	text = strings.TrimRight(inert.Text(text), "\n")
	_, _ = fmt.Fprintf(from, "%s: %s\n", who, strings.ReplaceAll(text, "\n", "\n  "))
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

// inertLines joins lines, each inert.
func inertLines(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(inert.Line(l) + "\n")
	}
	return b.String()
}
