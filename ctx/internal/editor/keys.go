package editor

import (
	"os"

	"golang.org/x/term"
)

// workKey is fed to the library when there is work between two keys. Typed by a
// person it does nothing.
const workKey = 0x1e

// configure sets the library up. What the person's .inputrc says of keys stays,
// but for those that mean something in a chat.
func (e *Editor) configure() {
	s := e.shell
	s.Prompt.Primary(func() string {
		if e.raw == nil { // the first time the library shows it
			e.raw, _ = term.GetState(int(os.Stdin.Fd()))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.prompt
	})
	for name, value := range map[string]any{
		"enable-bracketed-paste": true, // several lines are one message
		"multiline-column":       false,
		"completion-query-items": 100,
		"cursor-position-probe":  true,
		"autocomplete":           false,
		"history-autosuggest":    false,
		"show-mode-in-prompt":    false,
		"convert-meta":           false,
	} {
		_ = s.Config.Set(name, value) // these exist
	}
	s.History.Add("history", e.history)
	s.PasteTransformer = func(text string) string { return e.fold(clean(text)) }
	s.AcceptMultiline = func(line []rune) bool { return len(line) == 0 || line[len(line)-1] != '\\' }
	s.Completer = e.complete
	// The library calls this before it waits for a key, on the goroutine that
	// may change the line. A key that is half read is waited for.
	s.Hint.SetProvider(func([]rune, int) []rune {
		if s.Keys.Empty() && s.Keymap.Local() == "" && e.due() {
			s.Keys.Feed(true, workKey)
		}
		return nil
	})
	s.Keymap.Register(map[string]func(){
		"chat-work":    e.work,
		"chat-alt":     func() { e.alt = true; s.Keymap.Commands()["accept-line"]() },
		"chat-edit":    e.edit,
		"chat-suspend": e.suspend,
	})
	for _, keymap := range []string{"emacs", "emacs-standard", "vi", "vi-insert", "vi-command", "vi-move"} {
		if s.Config.Binds[keymap] == nil {
			continue
		}
		for key, command := range map[string]string{
			string(rune(workKey)): "chat-work",
			"\x1b\r":              "chat-alt",
			"\x1b\n":              "chat-alt",
			"\x1b[13;3u":          "chat-alt",
			"\x1b[27;3;13~":       "chat-alt",
			"\x07":                "chat-edit",
			"\x1a":                "chat-suspend",
		} {
			_ = s.Config.Bind(keymap, key, command, false) // the keymap exists
		}
	}
}
