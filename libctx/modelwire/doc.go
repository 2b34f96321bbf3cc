// Package modelwire is the language of the model socket: what ctxd asks of
// ctxmodel, and the frames that answer. It is the same whatever provider stands
// behind it. docs/reference/model.md describes it; the examples there are run as
// test vectors.
//
// A connection carries one request, one JSON object on one line, and then the
// frames of its answer, one a line. Closing the connection cancels the request.
// Decoding is strict: case-sensitive names, no repeated names, valid UTF-8.
// Unknown members are refused in requests and ignored in frames.
package modelwire

// Version is the version of the protocol that this package speaks.
const Version = 1
