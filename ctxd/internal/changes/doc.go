// Package changes finds out what a run changed in its workspace, so that a person
// can look at it before anything of it is executed (docs/reference/changes.md). A
// tool of which it is known what it changes is believed; for every other program
// that could write there the workspace is walked once, at the end of the run, for
// what has a change time since the first of them began. Nothing is opened but
// directories, no link is followed, and all of it has the rights of the agent.
package changes
