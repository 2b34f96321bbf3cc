package checker

// answerable is the call of that id which a run may decide about and give its
// result: its own, or one that was carried into it.
func (s *one) answerable(id string, r *run) *call {
	if c := r.find(id); c != nil && (c.result == nil || r.tsh) {
		return c
	}
	for _, c := range s.carried {
		if c.id == id && c.again == r {
			return c
		}
	}
	return r.find(id)
}

// carry checks the calls of a run at its end. Those without a result are the ones
// that its checkpoint names, and only a host that died leaves any. What was
// carried into the run has its result by now.
func (s *one) carry(n int64, rec object, r *run) {
	named := map[string]bool{}
	list, _ := rec["carried"].([]any)
	for _, v := range list {
		id, _ := v.(string)
		named[id] = true
		if r.find(id) == nil || r.tsh || rec.str("outcome") != "interrupted" {
			s.bad(n, Pairs, "run %s carries call %v on", r.id, v)
		}
	}
	var left []*call
	for _, c := range r.calls {
		switch {
		case c.result == nil && named[c.id]:
			c.decided = false // and once more in the next run
			left = append(left, c)
		case c.result == nil:
			s.bad(n, Pairs, "call %s of run %s has no result at its end", c.id, r.id)
		case named[c.id]:
			s.bad(n, Pairs, "run %s carries call %s on, which has its result", r.id, c.id)
		}
	}
	if r.tsh {
		return
	}
	for _, c := range s.carried {
		if c.result == nil {
			s.bad(n, Pairs, "call %s, carried into run %s, has no result at its end", c.id, r.id)
		}
	}
	s.carried = left
}
