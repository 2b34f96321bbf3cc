package runs

import "strings"

// thought makes lines of the pieces in which a model's reasoning comes.
type thought struct {
	line strings.Builder
	said bool // pieces came since the last whole one
}

// maxThought is where a line without an end is broken, in bytes.
const maxThought = 2 << 10

// piece adds a piece and says the lines that are complete.
func (t *thought) piece(text string, say func(string)) {
	t.said = true
	for {
		line, rest, whole := strings.Cut(text, "\n")
		t.line.WriteString(line)
		if !whole && t.line.Len() < maxThought {
			return
		}
		t.end(say)
		text = rest
		if text == "" {
			return
		}
	}
}

// end says what is left.
func (t *thought) end(say func(string)) {
	if strings.TrimSpace(t.line.String()) != "" {
		say("reasoning: " + t.line.String())
	}
	t.line.Reset()
}

// whole is reasoning that is complete; it is said unless it was already, piece by
// piece.
func (t *thought) whole(text string, say func(string)) {
	if !t.said {
		t.piece(text, say)
		t.end(say)
	}
	t.said = false
}
