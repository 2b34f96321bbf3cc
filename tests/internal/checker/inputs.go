package checker

// claim notes that a run has a client id, which no other may have.
func (s *one) claim(n int64, client string, r *run) {
	if client == "" {
		return
	}
	if other, ok := s.clients[client]; ok {
		s.bad(n, Clients, "id %s was used in run %s, and is in run %s", client, other, r.id)
	}
	s.clients[client] = r.id
}

// accept is the record of an input: what follows is its entry, then the fact that
// it is delivered.
func (s *one) accept(n int64, frame object, r *run) {
	client := frame.str("client_id")
	if r.tsh || client == "" {
		s.bad(n, Inputs, "run %s accepts input %q", r.id, client)
	}
	s.claim(n, client, r)
	in := &input{op: frame.str("op"), text: frame.str("input")}
	switch in.op {
	case "steer", "follow_up", "finish":
	default:
		s.bad(n, Inputs, "input %s of run %s comes by %q", client, r.id, in.op)
	}
	r.inputs[client] = in
	s.inputs[client] = in.text
	s.report.Inputs++
}

// enter is a message of the user in a run that has started.
func (s *one) enter(n int64, rec object, r *run) {
	client := rec.str("client_id")
	in := r.inputs[client]
	switch {
	case in == nil:
		s.bad(n, Inputs, "message %q of run %s was not accepted", client, r.id)
	case in.entered:
		s.bad(n, Inputs, "input %s of run %s is a message twice", client, r.id)
	case in.text != text(rec) || in.op != rec.str("origin"):
		s.bad(n, Inputs, "input %s of run %s is %.100q by %s, accepted was %.100q by %s", client, r.id, text(rec), rec.str("origin"), in.text, in.op)
		in.entered = true
	default:
		in.entered = true
	}
}

// deliver is the fact behind the message.
func (s *one) deliver(n int64, frame object, r *run) {
	client := frame.str("client_id")
	in := r.inputs[client]
	if in == nil || !in.entered || in.delivered {
		s.bad(n, Inputs, "input %q of run %s is delivered, and is no message, or was delivered before", client, r.id)
		return
	}
	in.delivered = true
	if kind := frame.str("type"); (in.op == "follow_up") != (kind == "follow_up_delivered") || frame.str("op") != in.op {
		s.bad(n, Inputs, "input %s of run %s, %s, is %s", client, r.id, in.op, kind)
	}
}

// heard checks at the end of a run that nothing said into it is lost.
func (s *one) heard(n int64, r *run) {
	for client, in := range r.inputs {
		if !in.delivered {
			s.bad(n, Inputs, "input %s of run %s was accepted and is not delivered", client, r.id)
		}
	}
}
