package control

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// modelID is a model by its full name, provider/model; an alias is not enough.
func modelID(s string) (libctx.Model, error) {
	m, err := libctx.ParseModel(s)
	if err == nil && !strings.Contains(s, "/") {
		return "", linefile.Refuse(0, s, "is not PROVIDER/MODEL")
	}
	return m, err
}

// ParseModelID reads a model's file id: provider/model, the name it has in the
// tree.
func ParseModelID(text []byte) (libctx.Model, error) { return value("id", text, modelID) }

// ParseDriver reads a model's file driver: one word that names who speaks to
// it, the format of its provider or debug.
func ParseDriver(text []byte) (string, error) {
	return value("driver", text, func(s string) (string, error) {
		_, err := libctx.ParseSubject(s)
		return s, err
	})
}

// What a model can do, the words of its file cap.
const (
	CapChat      = "chat"
	CapStream    = "stream"
	CapTools     = "tool_call_syntax"
	CapReasoning = "reasoning"
)

var modelCapWord = oneOf(CapChat, CapStream, "session", "vision", "audio_input", "audio_output", "json_schema",
	CapTools, CapReasoning, "embedding", "rerank")

// ParseModelCap reads a model's file cap: what it can do, one word of a closed
// list a line.
func ParseModelCap(text []byte) ([]string, error) { return list("cap", text, modelCapWord) }

// ParseDefault reads a model's file default: options that every request to it
// carries, KEY=VALUE lines of the grammar of env, each key once.
func ParseDefault(text []byte) ([]string, error) { return assignments("default", text) }

// ParseFallback reads a model's file fallback: the models that are tried in its
// place, provider/model, one a line, at most libctx.MaxFallbacks.
func ParseFallback(text []byte) ([]libctx.Model, error) {
	all, err := list("fallback", text, modelID)
	if err == nil && len(all) > libctx.MaxFallbacks {
		n := libctx.MaxFallbacks
		err = linefile.In("fallback", linefile.Refuse(n+1, string(all[n]), "is one model too many: there are at most %d", n))
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Limit is the most tokens that input and output of one request have together,
// as the file limit says it; 0 if nobody knows.
type Limit uint32

// String is unknown or the number.
func (n Limit) String() string {
	if n == 0 {
		return "unknown"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// ParseLimit reads a model's file limit: unknown or a positive number of tokens.
func ParseLimit(text []byte) (Limit, error) {
	return value("limit", text, func(s string) (Limit, error) {
		if s == "unknown" {
			return 0, nil
		}
		if strings.Trim(s, "0123456789") != "" {
			return 0, linefile.Refuse(0, s, "is neither unknown nor a decimal number of tokens")
		}
		n, err := positive(s, 1<<32-1)
		return Limit(n), err
	})
}

// ParseMaxOutput reads a model's file max_output: the most tokens of one answer.
func ParseMaxOutput(text []byte) (uint32, error) {
	return value("max_output", text, func(s string) (uint32, error) {
		n, err := positive(s, 1<<32-1)
		return uint32(n), err
	})
}
