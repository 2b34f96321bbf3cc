package hide

// Stream takes the key out of a text that comes in pieces. What may be the
// beginning of a key is held back until it is clear. It is for one goroutine.
type Stream struct {
	Filter *Filter
	held   string
}

// Next takes a piece and returns what of the text can be shown now.
func (s *Stream) Next(piece string) string {
	text := s.held + piece
	spans, open := s.Filter.look(text)
	s.held = text[open:]
	return Replace(text[:open], spans)
}

// Rest is what was held back, at the end of the text.
func (s *Stream) Rest() string {
	rest := s.held
	s.held = ""
	return rest
}
