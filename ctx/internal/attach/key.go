package attach

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Key is the key that begins the commands of the client itself: the control
// character that terminals send for it. Every other key is the program's.
type Key int

// The default is the one control key that shells, editors, tmux and screen leave
// alone. NoKey leaves every key to the program.
const (
	DefaultKey Key = 0x1e // Ctrl+^
	NoKey      Key = -1
)

// ParseKey reads "^A", "ctrl-a", "C-a", also with one of @ \ ] ^ _, or "none".
// Keys that are something else on a keyboard (Escape, Tab, Enter, Backspace) are
// refused like anything else, with errdefs.Invalid.
func ParseKey(s string) (Key, error) {
	if s == "none" {
		return NoKey, nil
	}
	name := s
	for _, prefix := range []string{"^", "ctrl-", "ctrl+", "c-"} {
		if len(s) == len(prefix)+1 && strings.EqualFold(s[:len(prefix)], prefix) {
			name = strings.ToUpper(s[len(prefix):])
		}
	}
	if len(name) == 1 && name != s && (name[0] >= 'A' && name[0] <= 'Z' || strings.ContainsAny(name, `@\]^_`)) && !strings.ContainsAny(name, "HIJM") {
		return Key(name[0] & 0x1f), nil
	}
	return NoKey, errdefs.New(errdefs.Invalid, "key %.20q is none that can be used", s).
		WithHint("a control key such as ^A, ^^ or ctrl-], or none")
}

// String is the key as people know it: Ctrl+A.
func (k Key) String() string {
	if k == NoKey {
		return "none"
	}
	return "Ctrl+" + string(rune(k|0x40))
}
