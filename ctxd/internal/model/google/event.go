package google

import (
	"bytes"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"
)

// response is one event of an answer: genai.GenerateContentResponse, with what
// that can not hold exactly as it came.
type response struct {
	Candidates     []*candidate   `json:"candidates"`
	PromptFeedback feedback       `json:"promptFeedback"`
	Usage          jsontext.Value `json:"usageMetadata"`
	Error          jsontext.Value `json:"error"`
}

type candidate struct {
	Content struct {
		Parts []*part `json:"parts"`
	} `json:"content"`
	FinishReason genai.FinishReason `json:"finishReason"`
}

type feedback struct {
	BlockReason genai.BlockedReason `json:"blockReason"`
}

type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string         `json:"id"`
		Name string         `json:"name"`
		Args jsontext.Value `json:"args"`
	} `json:"functionCall"`
}

// decode reads an event.
func decode(data []byte, to any) bool {
	return jsontext.Value(data).Kind() == '{' && json.Unmarshal(data, to, jsontext.AllowDuplicateNames(true)) == nil
}

// isLast reports the terminal event: one that says why the answer ends, and what
// it cost. A reason alone is followed by the costs or by the end of the stream.
func isLast(ev transport.Event) bool {
	if !bytes.Contains(ev.Data, []byte("Reason")) || !bytes.Contains(ev.Data, []byte("usageMetadata")) {
		return false
	}
	var r struct {
		Candidates []*struct {
			FinishReason genai.FinishReason `json:"finishReason"`
		} `json:"candidates"`
		PromptFeedback feedback       `json:"promptFeedback"`
		Usage          jsontext.Value `json:"usageMetadata"`
	}
	if !decode(bytes.TrimSpace(ev.Data), &r) || r.Usage.Kind() != '{' {
		return false
	}
	return r.PromptFeedback.BlockReason != "" || len(r.Candidates) > 0 && r.Candidates[0] != nil && ended(r.Candidates[0].FinishReason)
}

func ended(r genai.FinishReason) bool { return r != "" && r != genai.FinishReasonUnspecified }

// usageOf maps the token counts. Google counts cached tokens as part of the
// prompt, and thinking beside the answer; we do neither. What it does not say is
// unknown; a request that cost nothing at all is a server that does not count.
func usageOf(raw jsontext.Value) *modelwire.Usage {
	var u struct {
		Prompt   *int64 `json:"promptTokenCount"`
		Cached   *int64 `json:"cachedContentTokenCount"`
		Tools    *int64 `json:"toolUsePromptTokenCount"` // not in Prompt
		Said     *int64 `json:"candidatesTokenCount"`
		Thoughts *int64 `json:"thoughtsTokenCount"` // not in Said
	}
	if !decode(raw, &u) {
		return nil
	}
	f := &modelwire.Usage{Input: sum(u.Prompt, u.Tools), Output: sum(u.Said, u.Thoughts)}
	if (f.Input == nil || *f.Input == 0) && (f.Output == nil || *f.Output == 0) {
		return nil
	}
	if u.Thoughts != nil && f.Output != nil {
		f.Reasoning = u.Thoughts
	}
	if n := u.Cached; n != nil && *n >= 0 && f.Input != nil && u.Prompt != nil && *n <= *u.Prompt {
		rest := *f.Input - *n
		f.Input, f.CacheRead = &rest, n
	}
	return f
}

// sum adds counts: unknown if none is said, or what is said can not be.
func sum(counts ...*int64) *int64 {
	var total int64
	said := false
	for _, n := range counts {
		switch {
		case n == nil:
			continue
		case *n < 0 || *n > libctx.MaxModelTokens:
			return nil
		}
		total += *n
		said = true
	}
	if !said || total > libctx.MaxModelTokens {
		return nil
	}
	return &total
}
