package editor

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
)

// workKey is fed to the library when there is work between two keys. Typed by a
// person it does nothing.
const workKey = 0x1e

// configure sets the library up. What the person's .inputrc says of keys stays,
// but for those that mean something here.
func (e *Editor) configure() {
	s := e.shell
	s.Prompt.Primary(func() string {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.reserve() + e.prompt
	})
	for name, value := range map[string]any{
		"multiline-column":       false,
		"completion-query-items": 100,
		"cursor-position-probe":  false,
		"autocomplete":           false,
		"history-autosuggest":    false,
		"show-mode-in-prompt":    false,
		"convert-meta":           false,
	} {
		_ = s.Config.Set(name, value) // these exist
	}
	if s.Config.GetString("cursor-emacs") == "" {
		_ = s.Config.Set("cursor-emacs", "default") // the person's own
	}
	s.History.Add("history", e.history)
	s.AcceptMultiline = func(line []rune) bool {
		if e.opts.Whole != nil {
			return e.opts.Whole(e.expand(string(line)))
		}
		return len(line) == 0 || line[len(line)-1] != '\\'
	}
	s.Completer = e.complete
	// The library calls this before it waits for a key, on the goroutine that
	// may change the line. A key that is half read is waited for.
	s.Hint.SetProvider(func([]rune, int) []rune {
		if s.Keys.Empty() && s.Keymap.Local() == "" && e.due() {
			s.Keys.Feed(true, workKey)
		}
		if s.Keys.Empty() && len(s.Keys.Caller()) == 0 { // not in the middle of a command
			e.tty.more()
		}
		return nil
	})
	s.Keymap.Register(map[string]func(){
		"host-work":    e.work,
		"host-alt":     func() { e.alt = true; s.Keymap.Commands()["accept-line"]() },
		"host-edit":    e.edit,
		"host-suspend": e.suspend,
	})
	for _, keymap := range []string{"emacs", "emacs-standard", "vi", "vi-insert", "vi-command", "vi-move"} {
		if s.Config.Binds[keymap] == nil {
			continue
		}
		for key, command := range map[string]string{
			string(rune(workKey)): "host-work",
			"\u008d":              "host-alt", // how the library spells Alt with Ctrl+M
			"\u008a":              "host-alt",
			"\x1b[13;3u":          "host-alt",
			"\x1b[27;3;13~":       "host-alt",
			"\x07":                "host-edit",
			"\x1a":                "host-suspend",
		} {
			_ = s.Config.Bind(keymap, key, command, false) // the keymap exists
		}
	}
}

// reserve makes room below the line, by scrolling if there is none: the library
// goes there to clear what is left of an earlier, longer line, and without asking
// the terminal it can not know where the screen ends. It is called with the
// cursor at the beginning of the line, and leaves it there. A vertical tab is a
// LF that the library does not take for one.
func (e *Editor) reserve() string {
	rows := 1
	columns := e.Columns()
	for line := range strings.SplitSeq(string(*e.shell.Line()), "\n") {
		rows += 1 + (uniseg.StringWidth(e.opts.Prompt)+uniseg.StringWidth(line))/columns
	}
	return strings.Repeat("\v", rows) + fmt.Sprintf("\x1b[%dA", rows)
}
