package google

import (
	"bytes"
	"strings"

	"cortexfs.org/ctxd/internal/model/compose"
	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json"
	"google.golang.org/genai"
)

// answer collects the events of one answer.
type answer struct {
	*compose.Answer
	request *modelwire.Generate
	key     provider.Secret
	pieces  []*piece
	stop    genai.FinishReason
	blocked bool // the prompt was
}

// piece is a part of the answer, or a signature that belongs to none.
type piece struct {
	part      *compose.Part // nil: only the signature
	kind      string        // text, reasoning, call
	text      string        // of a piece with a signature
	signature string
}

// event takes one event. What it says wrongly, or of a failure, is a
// *modelwire.Failure.
func (a *answer) event(ev transport.Event) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return nil
	}
	var r response
	if !decode(data, &r) {
		return modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassInterrupted, "an event of the answer is no response")
	}
	if r.Error != nil && r.Error.Kind() != 'n' {
		return reported(data, a.Status(), a.key)
	}
	if u := usageOf(r.Usage); u != nil {
		a.SetUsage(u) // of the whole answer until then
	}
	a.blocked = a.blocked || r.PromptFeedback.BlockReason != ""
	if len(r.Candidates) == 0 || r.Candidates[0] == nil {
		return nil
	}
	c := r.Candidates[0] // we asked for one
	for _, p := range c.Content.Parts {
		if p == nil {
			continue
		}
		if err := a.take(p); err != nil {
			return err
		}
	}
	if ended(c.FinishReason) && a.stop == "" {
		a.stop = c.FinishReason
	}
	return nil
}

// take adds a part. Parts that are neither text nor a call are left out.
func (a *answer) take(p *part) error {
	if err := a.Grow(len(p.Signature)); err != nil {
		return err
	}
	if p.Call != nil {
		return a.call(p)
	}
	kind := "text"
	if p.Thought {
		kind = "reasoning"
	}
	if p.Text == "" && p.Signature == "" {
		return nil
	}
	to, err := a.open(kind, p.Text, p.Signature)
	if err != nil || to.part == nil {
		return err
	}
	return to.part.Add(p.Text)
}

// call adds a call, which comes as a whole.
func (a *answer) call(p *part) error {
	to, err := a.Call(p.Call.ID, p.Call.Name)
	if err != nil {
		return err
	}
	a.pieces = append(a.pieces, &piece{part: to, kind: "call", signature: p.Signature})
	if args := p.Call.Args; len(args) > 0 && args.Kind() != 'n' {
		if err := to.Add(string(args)); err != nil {
			return err
		}
	}
	return to.End()
}

// open is the piece a text belongs to: the last one if it is of the same kind,
// else a new one. A text with a signature stays apart, as it has to go back.
func (a *answer) open(kind, text, signature string) (*piece, error) {
	if n := len(a.pieces); n > 0 && signature == "" {
		if last := a.pieces[n-1]; last.kind == kind && last.part != nil && last.signature == "" {
			return last, nil
		}
	}
	p := &piece{kind: kind, signature: signature}
	if signature != "" {
		p.text = text
	}
	if len(a.pieces) >= libctx.MaxModelEvents {
		return nil, modelwire.Fail(errdefs.Provider, modelwire.PhaseDecode, modelwire.ClassLimit, "the answer has too many parts")
	}
	var err error
	switch {
	case text == "":
	case kind == "text":
		p.part, err = a.Text()
	default:
		p.part, err = a.Reasoning()
	}
	a.pieces = append(a.pieces, p)
	return p, err
}

// complete reports whether the answer said why it ends.
func (a *answer) complete() bool { return a.stop != "" || a.blocked }

// finish ends an answer whose stream has ended.
func (a *answer) finish() error {
	if !a.complete() {
		return a.Fail(modelwire.Fail(errdefs.Provider, modelwire.PhaseBody, modelwire.ClassInterrupted, "the answer ends without a finishReason"))
	}
	return a.Finish(a.stopped(), compose.Pack(a.request, a.marks()))
}

// marks are the signatures: a text beside a part that goes back, else a whole
// part.
func (a *answer) marks() []compose.Mark {
	var out []compose.Mark
	at := 0
	for _, p := range a.pieces {
		says := p.part != nil && p.part.Says()
		if p.signature != "" {
			var v any = p.signature
			if !says {
				v = struct {
					Thought   bool   `json:"thought,omitzero"`
					Text      string `json:"text"`
					Signature string `json:"thoughtSignature"`
				}{p.kind == "reasoning", p.text, p.signature}
			}
			// Text that is no UTF-8 can not have come, and can not go back.
			if data, err := json.Marshal(v); err == nil {
				out = append(out, compose.Mark{At: at, Data: data})
			}
		}
		if says {
			at++
		}
	}
	return out
}

// stopped is the canonical word for how the answer ended.
func (a *answer) stopped() string {
	switch a.stop {
	case genai.FinishReasonStop:
		if a.Calls() > 0 {
			return modelwire.StopToolCalls
		}
		return modelwire.StopEnd
	case genai.FinishReasonMaxTokens:
		return modelwire.StopLength
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent, genai.FinishReasonSPII:
		return modelwire.StopFiltered
	}
	if a.blocked && a.stop == "" || strings.HasPrefix(string(a.stop), "IMAGE_") {
		return modelwire.StopFiltered
	}
	return modelwire.StopOther
}
