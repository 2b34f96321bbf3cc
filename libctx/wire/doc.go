// Package wire is the language of the agent socket: JSON-lines framing with a
// limit, requests, and the frames that answer them. PROTOCOL.md beside this
// file describes it for people who write clients; its examples are run as test
// vectors.
//
// Decoding is strict: one object a line, case-sensitive names, no duplicate
// names, valid UTF-8. Unknown members of requests are ignored, except in
// approve, where they are refused.
package wire
