// Package session is the durable store of conversations: the ledger
// (messages.jsonl), the event log clients replay (events.jsonl), an index that
// makes opening cheap, and projections for people and scripts.
//
// The ledger is the only truth. It is append-only, one JSON object a line;
// records that belong together are one write and one fdatasync, and Commit
// returns after that. Everything else in a session directory can be deleted and
// is derived again. docs/reference/session.md describes the files.
//
// Writers: Place.Open gives the one Session that may write; it holds a lock
// until Close or the end of the process. Readers: Place.Read and Place.List
// never change a byte and never keep a writer waiting.
package session
