package models

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/modelwire"
)

// speech shows an answer to a person: its text as it comes, and what it calls
// and costs beside it.
type speech struct {
	from  *caller.Caller
	inert inert.Inert
	said  strings.Builder // the pieces so far; at most what an answer can have
	open  bool            // the last line has no LF yet
}

func newSpeech(from *caller.Caller) *speech { return &speech{from: from} }

// all shows the whole answer. A failed one is the error of its kind.
func (s *speech) all(a *Answer) error {
	var failed error
	for {
		_, f, err := a.Next()
		if errors.Is(err, io.EOF) {
			err = failed
		} else if err == nil {
			if e, ok := f.(*modelwire.Error); ok {
				failed = Failed(&e.Failure)
			}
			s.frame(f)
			if err = s.from.Failed(); err == nil {
				continue
			}
		}
		s.newline()
		return err
	}
}

func (s *speech) frame(f modelwire.Frame) {
	switch f := f.(type) {
	case *modelwire.Lifecycle:
		s.from.Detail("model: " + f.State)
	case *modelwire.Delta:
		s.said.WriteString(f.Text)
		s.print(f.Text)
	case *modelwire.MessageFrame:
		s.message(f)
	case *modelwire.Usage:
		s.from.Detail("tokens: " + tokens("input", f.Input) + tokens("cache read", f.CacheRead) +
			tokens("cache write", f.CacheWrite) + tokens("output", f.Output))
	}
}

// message completes what was shown piece by piece.
func (s *speech) message(f *modelwire.MessageFrame) {
	var text strings.Builder
	for _, p := range f.Content {
		if p.Type == "text" {
			text.WriteString(p.Text)
		}
	}
	if rest, ok := strings.CutPrefix(text.String(), s.said.String()); ok {
		s.print(rest)
	} else { // the pieces were something else
		s.newline()
		s.print(text.String())
	}
	s.newline()
	for _, p := range f.Content {
		switch {
		case p.Type != "tool_call":
		case p.Invalid != "":
			s.from.Note("call " + string(p.Name) + ": " + p.Invalid)
		default:
			s.from.Note("call " + string(p.Name) + " " + render.Arguments(p.Arguments, 200))
		}
	}
	if f.Stop != modelwire.StopEnd && f.Stop != modelwire.StopToolCalls {
		s.from.Note("the answer ended: " + f.Stop)
	}
}

func (s *speech) print(text string) {
	if text == "" {
		return
	}
	_, _ = s.from.Write(s.inert.Append(nil, []byte(text))) // the printer keeps the error
	s.open = text[len(text)-1] != '\n'
}

// newline ends an unfinished line.
func (s *speech) newline() {
	if b := s.inert.Flush(nil); len(b) > 0 {
		_, _ = s.from.Write(b)
	}
	if s.open {
		_, _ = s.from.Write([]byte("\n"))
		s.open = false
	}
}

// tokens shows one bucket; what the provider did not say is unknown.
func tokens(name string, n *int64) string {
	if n == nil {
		return " " + name + " unknown"
	}
	return fmt.Sprintf(" %s %d", name, *n)
}
