package run

import "cortexfs.org/libctx/session"

// Commit commits records of a send that belong together as one batch. Make is
// told the id that the first entry among them gets; entries without an id follow
// one another from the tip of the session's branch. A storage error ends the
// run: return it from Drive.
func (r *Run) Commit(make func(next string) []session.Record) error {
	return r.live.commit(r, func(l ledger) []session.Record { return make(l.NextEntryID()) })
}
