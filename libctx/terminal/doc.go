// Package terminal is what of a terminal outlives its process: the resource
// directory below the terminal's session, with its meta.json, its state, the
// receipt of its launch and the event files. docs/reference/terminal.md has the
// formats.
//
// Who writes what: the launcher of a terminal makes the directory and sets the
// states, ctxterm writes the event files, the agent's server adds the receipt.
// Everybody else reads.
package terminal
