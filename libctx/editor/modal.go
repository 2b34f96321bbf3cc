package editor

import (
	"fmt"
	"os"
)

// Ask gives the terminal to a question, in the place of the line, and takes it back:
// ask is called between two keys, on the goroutine that reads them, once a line is
// being written and nobody else has the terminal. What is written to the editor
// meanwhile appears behind it, and the line as it was below that.
func (e *Editor) Ask(ask func(terminal *os.File)) {
	e.post(func() {
		e.shell.Display.CursorToLineStart()
		fmt.Fprint(os.Stdout, "\r\x1b[J")
		e.lent(func() { ask(e.tty.file) })
		fmt.Fprint(os.Stdout, "\r")
		e.shell.Display.PrintPrimaryPrompt()
		e.shell.Display.Refresh()
		e.tty.set(reading)
	})
}
