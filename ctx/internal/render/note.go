package render

import (
	"fmt"
	"strings"

	"cortexfs.org/libctx/wire"
)

// Passed says that a model was passed over, and why.
func Passed(f *wire.CandidateError) string {
	return fmt.Sprintf("model %s was passed over: %s (%s)", f.Model, f.Message, f.Code)
}

// Context says what of a conversation a model is not shown.
func Context(f *wire.Context) string {
	var what []string
	switch {
	case f.Older && f.Dropped == 0:
		what = append(what, "is not shown the beginning of the conversation")
	case f.Older:
		what = append(what, fmt.Sprintf("is not shown %s and all that came before", messages(f.Dropped)))
	case f.Dropped > 0:
		what = append(what, "is not shown the oldest "+messages(f.Dropped))
	}
	if f.Clipped > 0 {
		what = append(what, "sees "+messages(f.Clipped)+" shortened")
	}
	if len(what) == 0 {
		return "the model is shown the whole conversation"
	}
	return "for want of room the model " + strings.Join(what, ", and ")
}

// Asked says on one line what a person was asked.
func Asked(f *wire.ApprovalRequest) string {
	return fmt.Sprintf("asked uid %d: may %s run? (%s, %s)", f.UID, strings.TrimSpace(string(f.Name)+" "+Arguments(f.Arguments, 200)), f.Effect, f.Digest)
}

// Answered says what came of that.
func Answered(f *wire.ApprovalResult) string {
	word := map[string]string{
		wire.AllowOnce: "allowed once", wire.Deny: "denied", "timeout": "nobody answered in time: not allowed",
		"disconnected": "who was to be asked was not there: not allowed", "cancelled": "the run was cancelled: not allowed",
		"invalid": "the answer was none: not allowed", "interrupted": "the host died: not allowed",
	}[f.Decision]
	if word == "" {
		word = "not allowed: " + f.Decision
	}
	return "answered: " + word
}

// HookFailed says that a hook failed after a call.
func HookFailed(f *wire.HookFailed) string { return "hook " + f.Hook + " failed: " + f.Reason }

// PromptChanged says that the agent changed what it is told.
func PromptChanged(f *wire.PromptChanged) string {
	return "changed its own " + f.Control + ": " + Size(int64(f.Size)) + ", from its next run on"
}

func messages(n int) string { return count(n, "message") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Head is the first lines of a text, each at most columns wide, and a line that
// says what is missing; more tells how to see it.
func Head(text string, lines, columns int, more string) string {
	size := Size(int64(len(text)))
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	cut := len(all) > lines
	shown := all[:min(lines, len(all))]
	for i, line := range shown {
		short := Clip(line, columns)
		cut = cut || short != line
		shown[i] = short
	}
	if !cut {
		return text
	}
	return strings.Join(shown, "\n") + "\n[" + size + " in " + count(len(all), "line") + "; " + more + "]"
}
