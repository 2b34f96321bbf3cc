// Package window is the arithmetic of context windows: what an agent's setting
// means with a model of a known or unknown limit, and how many characters of a
// prompt that leaves. The setting itself is the control window, which package
// control reads. docs/reference/prompt.md describes it. It is pure.
package window

import (
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
)

// Size is the size of a context window, or the limit of a model, in tokens; 0
// is unknown.
type Size uint32

// Known reports whether the size is known.
func (z Size) Known() bool { return z != 0 }

// Effective is the window an agent with this setting has with a model of this
// limit: the limit where the setting is auto, else exactly the number set. A
// number needs a model whose limit is known and not smaller; anything else is
// errdefs.Invalid, and nothing is clamped.
func Effective(setting control.Window, limit Size) (Size, error) {
	switch {
	case setting == 0:
		return limit, nil
	case !limit.Known():
		return 0, errdefs.New(errdefs.Invalid, "window %s: the limit of the model is not known", setting).
			WithHint("set window to auto, or write the model's file limit")
	case Size(setting) > limit:
		return 0, errdefs.New(errdefs.Invalid, "window %s: is over the model's limit of %d tokens", setting, limit).
			WithHint("set window to auto, or to at most %d", limit)
	}
	return Size(setting), nil
}

// Reserve is the number of tokens kept back for the answer; 0 if the size is
// unknown.
func (z Size) Reserve() int64 {
	if !z.Known() {
		return 0
	}
	return min(libctx.MaxReserveTokens, max(1, int64(z)/4))
}

// Chars is the window in characters, 0 if it is unknown. The largest is below
// 2^35.
func (z Size) Chars() int64 { return int64(z) * libctx.CharsPerToken }

// InputChars is what of Chars is left for the message array, as bytes of its
// JSON text, never above libctx.MaxPrompt; 0 if the size is unknown, or if
// nothing is left.
func (z Size) InputChars() int64 {
	return min(libctx.MaxPrompt, z.Chars()-z.Reserve()*libctx.CharsPerToken)
}

// PromptBytes bounds the message array of a request whose system message takes
// system bytes of it: InputChars, or where the window is unknown the system
// message and libctx.HistoryBytes.
func (z Size) PromptBytes(system int64) int64 {
	if z.Known() {
		return z.InputChars()
	}
	return min(libctx.MaxPrompt, min(libctx.MaxPrompt, system)+libctx.HistoryBytes)
}

// SkillChars bounds the list of skills: 2 % of the window, or
// libctx.MaxSkillText characters if it is unknown.
func (z Size) SkillChars() int {
	if !z.Known() {
		return libctx.MaxSkillText
	}
	return int(z.Chars() / 50)
}

// RuleChars bounds the text of the AGENTS.md files: libctx.MaxRuleText
// characters, and no more than a quarter of a known window's input.
func (z Size) RuleChars() int { return z.share(libctx.MaxRuleText, 4) }

// ToolChars bounds the text of loaded and pinned tools: libctx.MaxContextText
// bytes, and no more than an eighth of a known window's input.
func (z Size) ToolChars() int { return z.share(libctx.MaxContextText, 8) }

func (z Size) share(most, part int) int {
	if !z.Known() {
		return most
	}
	return int(min(int64(most), z.InputChars()/int64(part)))
}

// Env is what the host tells programs of a known window: the variables
// CTX_CONTEXT_WINDOW_TOKENS and CTX_CONTEXT_WINDOW_CHARS. Of an unknown one
// they are told nothing.
func (z Size) Env() []string {
	if !z.Known() {
		return nil
	}
	return []string{
		"CTX_CONTEXT_WINDOW_TOKENS=" + strconv.FormatUint(uint64(z), 10),
		"CTX_CONTEXT_WINDOW_CHARS=" + strconv.FormatInt(z.Chars(), 10),
	}
}
