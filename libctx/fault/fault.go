// Package fault lets a test build fail where it hurts: at a named point between
// two steps of a commit the process can be killed, a write can tear or be
// refused, and the clock can be wrong. And one check of many can be switched off,
// so that an attack shows what it is there for.
//
// Only programs built with the tag "faults" can do that. Without the tag every
// function here is its own plain meaning (nothing, the write, the time), is
// inlined, and leaves no trace in a program; tests/soak and tests/adversary check
// that. What fails with the tag is said by CTX_FAULTS; docs/endurance.md has its
// grammar and the names of the points.
package fault
