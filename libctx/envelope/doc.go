// Package envelope is the contract between the host and an executable agent,
// sdk-envelope-v1: the one invocation a step finds on its standard input, and
// the frames it may write on its standard output.
// docs/reference/envelope.md describes it for readers.
//
// The package does no I/O. The host encodes invocations and feeds the lines it
// reads to an Output; package sdk does the other half for agents written in Go.
package envelope
