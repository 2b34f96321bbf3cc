// Package runs is what ctx does through an agent's socket: start runs and show
// them, follow sessions, cancel, ask for the state, stop.
package runs

import (
	"strings"

	"cortexfs.org/libctx/inert"

	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
)

// speech shows the assistant's text: pieces as they arrive, and of the whole
// message at the end only what was not shown.
type speech struct {
	out    *output.Printer
	inert  inert.Inert
	pieces strings.Builder // since the last message, as long as it may be needed
	total  int             // bytes of all pieces since the last message
	spoke  bool            // something was printed
	open   bool            // the last line has no LF yet
}

// piece shows a part of a message that is not complete yet.
func (s *speech) piece(text string) {
	if text == "" {
		return
	}
	if s.total == 0 {
		s.newline() // a message begins
	}
	s.total += len(text)
	if s.pieces.Len() < libctx.MaxFrame {
		s.pieces.WriteString(text)
	}
	s.print(text)
}

// message completes a message. A clipped one carries its head and tail only;
// size is then the length of the whole text.
func (s *speech) message(text string, clipped bool, size int) (missing bool) {
	shown := s.pieces.String()
	switch {
	case clipped && s.total == size: // all of it was streamed
	case !clipped && s.total == len(text) && shown == text:
	case !clipped && s.total == len(shown) && strings.HasPrefix(text, shown):
		if s.total == 0 {
			s.newline()
		}
		s.print(text[len(shown):])
	default: // pieces were lost, or belonged to something that was given up
		s.newline()
		s.print(text)
		missing = clipped
	}
	s.flush()
	s.pieces.Reset()
	s.total = 0
	return missing
}

func (s *speech) print(text string) {
	if text == "" {
		return
	}
	s.spoke = true
	b := s.inert.Append(nil, []byte(text))
	_, _ = s.out.Write(b) // the printer keeps the error
	s.open = text[len(text)-1] != '\n'
}

func (s *speech) flush() {
	if b := s.inert.Flush(nil); len(b) > 0 {
		_, _ = s.out.Write(b)
	}
}

// newline ends an unfinished line.
func (s *speech) newline() {
	s.flush()
	if s.open {
		_, _ = s.out.Write([]byte("\n"))
		s.open = false
	}
}
