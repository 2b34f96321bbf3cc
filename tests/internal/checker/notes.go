package checker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
)

// Note is one line of what a client wrote down: that it sent a message, or a
// durable frame, or the answer to something said into a run, exactly as it came.
type Note struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Client  string `json:"client,omitempty"` // the id of a message that was sent
	Input   string `json:"input,omitempty"`  // its text; "" for a tool operation
	Frame   string `json:"frame,omitempty"`  // a frame with an id, or an accepted one without, without its LF
}

// notes is everything clients wrote down, by agent and session.
type notes struct {
	given bool
	of    map[[2]string]*told
}

type told struct {
	frames map[string]sum    // by event id
	acks   map[string]string // client id to the run of its start or accepted frame
	sent   map[string]string // client id to its input
	faults []string
	seen   bool
}

func readNotes(paths []string) (*notes, error) {
	all := &notes{given: len(paths) > 0, of: map[[2]string]*told{}}
	for _, path := range paths {
		err := eachLine(path, func(n int64, line []byte) error {
			var note Note
			if err := json.Unmarshal(bytes.TrimSpace(line), &note); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
			return all.add(fmt.Sprintf("%s:%d", path, n), note)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (all *notes) add(where string, note Note) error {
	key := [2]string{note.Agent, note.Session}
	t := all.of[key]
	if t == nil {
		t = &told{frames: map[string]sum{}, acks: map[string]string{}, sent: map[string]string{}}
		all.of[key] = t
	}
	if note.Client != "" {
		t.sent[note.Client] = note.Input
	}
	if note.Frame == "" {
		return nil
	}
	f, err := parse([]byte(note.Frame))
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if id, s := f.str("id"), sumOf([]byte(note.Frame)); id != "" {
		if was, ok := t.frames[id]; ok && was != s {
			t.faults = append(t.faults, fmt.Sprintf("%s: frame %s was told with two contents", where, id))
		}
		t.frames[id] = s
	}
	if kind := f.str("type"); kind != "start" && kind != "accepted" {
		return nil
	}
	client, run := f.str("client_id"), f.str("run")
	if client == "" {
		return nil // of another operation
	}
	if was, ok := t.acks[client]; ok && was != run {
		t.faults = append(t.faults, fmt.Sprintf("%s: message %s was run %s, then %s", where, client, was, run))
	}
	t.acks[client] = run
	return nil
}

// check compares what clients of a session were told with what is recorded.
func (all *notes) check(s *one) {
	t := all.of[[2]string{s.agent, s.name}]
	if t == nil {
		return
	}
	t.seen = true
	r := s.report
	for _, f := range t.faults {
		r.add(s.dir, Told, "%s", f)
	}
	r.Frames += len(t.frames)
	r.Acknowledged += len(t.acks)
	for id, sum := range t.frames {
		switch have, ok := s.sums[id]; {
		case !ok:
			r.add(s.dir, Told, "frame %s was told and is not recorded", id)
		case have != sum:
			r.add(s.dir, Told, "frame %s is not what was told", id)
		}
	}
	for client, run := range t.acks {
		if s.clients[client] != run {
			r.add(s.dir, Told, "message %s was acknowledged as run %s, recorded is %q", client, run, s.clients[client])
		}
	}
	if len(t.sent) == 0 {
		return
	}
	for client := range s.clients {
		if _, ok := t.sent[client]; !ok {
			r.add(s.dir, Sent, "message %s is recorded and nobody sent it", client)
		}
	}
	for client, input := range s.inputs {
		if want := t.sent[client]; want != "" && want != input {
			r.add(s.dir, Sent, "message %s is %.100q, sent was %.100q", client, input, want)
		}
	}
}

// rest reports what was told about sessions that are not there.
func (all *notes) rest(r *Report) {
	var missing []string
	for key, t := range all.of {
		if !t.seen && len(t.frames) > 0 {
			missing = append(missing, key[0]+"/"+key[1])
		}
	}
	sort.Strings(missing)
	for _, name := range missing {
		r.add(name, Told, "clients were told of this session, and it is not there")
	}
}
