package host

import (
	"cortexfs.org/ctxd/internal/run"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// turnMessage is one element of history_messages.
type turnMessage struct {
	Role    string      `json:"role"`
	Content []wire.Part `json:"content"`
}

// history is the history_messages of step n: the conversation before this run,
// and, once an earlier call of this run has settled that is not the step's
// observation, this run's own messages up to it. What input and observation
// carry is not repeated.
func (h *Host) history(r *run.Run, n int) (string, error) {
	entries, err := r.History(4 * libctx.MaxContextText)
	if err != nil {
		return "", err
	}
	return render(selectHistory(entries, r.ID, n), libctx.MaxContextText)
}

// selectHistory leaves out what step n of the run gets in other members.
func selectHistory(entries []session.Entry, id libctx.Run, n int) []session.Entry {
	var kept, own []session.Entry
	for _, e := range entries {
		if e.Run == id {
			own = append(own, e)
		} else {
			kept = append(kept, e)
		}
	}
	if n < 2 {
		return kept
	}
	return append(kept, own[:max(0, len(own)-2)]...) // the last pair is the observation
}

// render encodes messages as a JSON array of at most max bytes. Long texts are
// clipped, then the oldest messages are dropped; a result never stays without
// its call.
func render(entries []session.Entry, max int) (string, error) {
	var encoded [][]byte
	total := len("[]")
	first := len(entries)
	for i := len(entries) - 1; i >= 0; i-- {
		m := turnMessage{Role: entries[i].Role}
		for _, p := range entries[i].Content {
			p.Text, _ = wire.Clip(p.Text, max/4)
			m.Content = append(m.Content, p)
		}
		text, err := json.Marshal(m, json.Deterministic(true))
		if err != nil {
			return "", errdefs.New(errdefs.Internal, "history: %w", err)
		}
		if total += len(text) + 1; total > max {
			break
		}
		encoded = append(encoded, text)
		first = i
	}
	// A result at the front has lost its call.
	for first < len(entries) && entries[first].Role == session.RoleTool {
		encoded = encoded[:len(encoded)-1]
		first++
	}
	out := []byte{'['}
	for i := len(encoded) - 1; i >= 0; i-- {
		out = append(out, encoded[i]...)
		if i > 0 {
			out = append(out, ',')
		}
	}
	return string(append(out, ']')), nil
}
