// Package attach is the client of a terminal: it shows one on the terminal of a
// person, who types into it or only watches, or copies what it shows into a
// pipe. Whatever ends it, the person's terminal is as it was: own text scrolled
// up, modes and keys restored, the cursor below the picture
// (docs/reference/terminal-socket.md).
package attach
