// Package capwire is the language of a run's capability socket: what a program
// inside a run and the daemon say to each other, one JSON object a line of at
// most libctx.MaxCapFrame bytes, one request a connection. PROTOCOL.md beside
// this file describes it for people who write such programs; its examples are run
// as test vectors. Who may ask for what is in docs/reference/control-socket.md.
//
// Decoding is as strict as in package wire, and members that are not known are
// refused. It is pure.
package capwire
