// Package run owns what is alive in one agent: its open sessions, their runs,
// the queue behind each run, and who is told about them.
//
// One driven run per session at a time; further sends wait, at most 64. Tool
// operations (tsh) do not wait for it. A run belongs to its session, not to the
// client that asked for it: a client that leaves takes nothing along, except in
// scope temp. Every record is committed by package session before anybody is
// told of it. How a run is carried out is an Engine's business.
//
// Locks: Live.mu guards a session, Hub.mu the tables and every reference count.
// Whoever holds a reference may take Hub.mu while holding Live.mu; Hub.mu's
// holder takes Live.mu only of a session without references. Neither is held
// while a worker works.
package run
