// Package termwire is the language of a terminal's socket: what ctxterm and its
// clients say to each other, one JSON object a line of at most libctx.MaxFrame
// bytes. PROTOCOL.md beside this file describes it for people who write
// clients; its examples are run as test vectors. How a terminal behaves is in
// docs/reference/terminal-socket.md.
//
// Decoding is as strict as in package wire. Members a side does not know are
// ignored, and so are frames of an unknown type.
package termwire
