// Package adminwire is the language of the admin socket of system mode: what ctx
// and `ctxd admin` say to each other, one JSON object a line of at most
// libctx.MaxFrame bytes, one request a connection. PROTOCOL.md beside this file
// describes it, and its examples are run as test vectors. Who may ask for what is
// in docs/reference/system.md.
//
// Decoding is as strict as in package wire, and members that are not known are
// refused. It is pure.
package adminwire
