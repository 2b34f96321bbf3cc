package checker

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// one is one session while it is checked.
type one struct {
	dir    string
	report *Report
	open   bool

	agent, name string
	runs        map[string]*run
	order       []string // runs by their first record
	entries     []int    // parent of each entry, 0 for none
	tip         int
	clients     map[string]string // client id to run
	inputs      map[string]string // client id to the text of its message
	unstarted   map[string]int    // run of a message without a start to its entry: the host died in the write of its batch
	driven      string            // the driven run that is open
	carried     []*call           // of an interrupted run, for the next driven one
	frames      []object          // the fold, in order
	sums        map[string]sum    // of event lines by id
}

// run is what a ledger says about one run.
type run struct {
	id      string
	tsh     bool
	client  string
	entry   int // of its message
	started bool
	ended   bool
	frames  int
	calls   []*call
	inputs  map[string]*input // by client id
}

// input is what a client said into a run.
type input struct {
	op, text           string
	entered, delivered bool
}

// call is one tool call of a run.
type call struct {
	id, name   string
	keys       []string // of marks it is to leave
	decided    bool
	asked      asked
	allowed    bool
	result     object // nil as long as there is none
	resultText string
	seq        int64
	again      *run // the run it was carried into
}

// find returns the newest call of that id.
func (r *run) find(id string) *call {
	for i := len(r.calls) - 1; i >= 0; i-- {
		if r.calls[i].id == id {
			return r.calls[i]
		}
	}
	return nil
}

type sum [16]byte

func sumOf(b []byte) (s sum) {
	whole := sha256.Sum256(b)
	copy(s[:], whole[:])
	return s
}

func (s *one) bad(line int64, rule, format string, args ...any) {
	s.report.add(s.dir+"/messages.jsonl:"+strconv.FormatInt(line, 10), rule, format, args...)
}

// eachLine calls fn with every line of a file, its LF included.
func eachLine(path string, fn func(n int64, line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := int64(1); ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			if err := fn(n, line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads the ledger and checks everything that needs nothing else.
func (s *one) read() error {
	s.runs, s.clients, s.inputs = map[string]*run{}, map[string]string{}, map[string]string{}
	s.unstarted = map[string]int{}
	s.agent, s.name = filepath.Base(filepath.Dir(filepath.Dir(s.dir))), filepath.Base(s.dir)
	last := int64(0)
	err := eachLine(s.dir+"/messages.jsonl", func(n int64, line []byte) error {
		last = n
		if !bytes.HasSuffix(line, []byte("\n")) {
			s.bad(n, Lines, "ends in the middle of a line")
			return nil
		}
		rec, err := parse(line)
		if err != nil {
			s.bad(n, Lines, "%v", err)
			return nil
		}
		s.report.Records++
		s.record(n, rec)
		return nil
	})
	if err != nil {
		return err
	}
	s.report.Runs += len(s.runs) - len(s.unstarted)
	s.report.Unstarted += len(s.unstarted)
	for _, id := range s.order {
		r := s.runs[id]
		s.report.Calls += len(r.calls)
		if s.open {
			continue
		}
		if _, never := s.unstarted[id]; !r.ended && !never {
			s.bad(last, Ends, "run %s has no checkpoint", id)
		}
		for _, c := range r.calls {
			if c.result == nil && !slices.Contains(s.carried, c) {
				s.bad(c.seq, Pairs, "call %s of run %s has no result", c.id, id)
			}
		}
	}
	if !s.open {
		for id, entry := range s.unstarted {
			if s.onBranch(entry) {
				s.bad(last, Starts, "the message e%d of run %s was never started and is in the conversation", entry, id)
			}
		}
	}
	return nil
}

func (s *one) record(n int64, rec object) {
	if rec.int("seq") != n {
		s.bad(n, Seq, "seq is %v", rec["seq"])
	}
	if _, err := time.Parse(time.RFC3339Nano, rec.str("ts")); err != nil {
		s.bad(n, Lines, "ts: %v", err)
	}
	kind := rec.str("type")
	if (n == 1) != (kind == "session") {
		s.bad(n, First, "a %s record", kind)
	}
	switch kind {
	case "session":
		if rec.int("format") != 1 || rec.str("agent") != s.agent || rec.str("session") != s.name {
			s.bad(n, First, "format %v, agent %v, session %v", rec["format"], rec["agent"], rec["session"])
		}
		return
	case "head":
		s.head(n, rec)
		return
	case "entry", "fact", "usage", "usage_uncertain", "checkpoint":
	default:
		s.bad(n, Lines, "unknown type %q", kind)
		return
	}
	if _, ok := rec["run"]; !ok && kind == "fact" {
		s.lone(n, rec)
		return
	}
	id := rec.str("run")
	r := s.runs[id]
	if r == nil {
		r = &run{id: id, inputs: map[string]*input{}}
		s.runs[id] = r
		s.order = append(s.order, id)
	}
	if id == "" {
		s.bad(n, Starts, "a %s record without a run", kind)
	}
	if r.ended {
		s.bad(n, Ends, "a %s record behind the checkpoint of run %s", kind, id)
	}
	isMessage := kind == "entry" && rec.str("role") == "user" && !r.started
	isStart := kind == "fact" && rec.object("frame").str("type") == "start"
	if !r.started && !isMessage && !isStart {
		s.bad(n, Starts, "a %s record before the start of run %s", kind, id)
	}
	s.frames = append(s.frames, fold(rec, r)...)
	switch kind {
	case "entry":
		s.entry(n, rec, r)
	case "fact":
		s.fact(n, rec.object("frame"), r)
	case "checkpoint":
		s.checkpoint(n, rec, r)
	}
}

// lone is a fact of the session itself: that its terminal was started, or stopped.
func (s *one) lone(n int64, rec object) {
	frame := object{"id": rec.str("event")}
	for k, v := range rec.object("frame") {
		frame[k] = v
	}
	if kind := frame.str("type"); kind != "agent.start" && kind != "agent.stop" {
		s.bad(n, Starts, "a fact of type %q without a run", kind)
	}
	if run, ok := strings.CutSuffix(rec.str("event"), ".1"); !ok || s.runs[run] != nil {
		s.bad(n, Starts, "event %q is of a run", rec.str("event"))
	}
	s.frames = append(s.frames, frame)
}

// entryNumber is the N of "eN", 0 for anything else.
func entryNumber(id string) int {
	if len(id) < 2 || id[0] != 'e' {
		return 0
	}
	n, err := strconv.Atoi(id[1:])
	if err != nil || "e"+strconv.Itoa(n) != id {
		return 0
	}
	return n
}

// known is the number of an entry that an id refers to; null is none.
func (s *one) known(n int64, rec object, member string) int {
	if v, ok := rec[member]; ok && v == nil {
		return 0
	}
	e := entryNumber(rec.str(member))
	if e < 1 || e > len(s.entries) {
		s.bad(n, Tree, "%s %v is no entry", member, rec[member])
		return 0
	}
	return e
}

func (s *one) head(n int64, rec object) { s.tip = s.known(n, rec, "id") }

// onBranch reports whether an entry is in the conversation.
func (s *one) onBranch(entry int) bool {
	for e := s.tip; e > 0; e = s.entries[e-1] {
		if e == entry {
			return true
		}
	}
	return false
}

func (s *one) entry(n int64, rec object, r *run) {
	parent := s.known(n, rec, "parent")
	s.entries = append(s.entries, parent)
	id := len(s.entries)
	if rec.str("id") != fmt.Sprintf("e%d", id) {
		s.bad(n, Tree, "entry %v is number %d", rec["id"], id)
	}
	if parent == s.tip {
		s.tip = id
	}
	if rec.str("kind") != "message" {
		return
	}
	switch rec.str("role") {
	case "user":
		if r.started {
			s.enter(n, rec, r)
			return
		}
		if r.entry != 0 {
			s.bad(n, Starts, "run %s has two messages", r.id)
		}
		r.entry = id
		s.unstarted[r.id] = id
		if client := rec.str("client_id"); client != "" {
			s.inputs[client] = text(rec)
		}
	case "assistant":
		for _, p := range rec.objects("content") {
			if p.str("type") == "tool_call" {
				s.call(n, p, r)
			}
		}
	case "tool":
		for _, p := range rec.objects("content") {
			if p.str("type") == "tool_result" {
				s.result(n, p, r, p.str("text"))
			}
		}
	}
}

// text is the text of a message.
func text(rec object) string {
	s := ""
	for _, p := range rec.objects("content") {
		if p.str("type") == "text" {
			s += p.str("text")
		}
	}
	return s
}

func (s *one) fact(n int64, frame object, r *run) {
	switch frame.str("type") {
	case "start":
		s.start(n, frame, r)
	case "tool_call":
		s.call(n, frame, r)
	case "tool_result":
		s.result(n, frame, r, frame.str("content"))
	case "accepted":
		s.accept(n, frame, r)
	case "steering_delivered", "follow_up_delivered":
		s.deliver(n, frame, r)
	case "approval_request":
		s.ask(n, frame, r)
	case "approval_result":
		s.answer(n, frame, r)
	case "tool_policy":
		c := s.answerable(frame.str("call"), r)
		switch {
		case c == nil:
			s.bad(n, Decisions, "decides about call %s of run %s, which there is not", frame.str("call"), r.id)
		case c.decided:
			s.bad(n, Decisions, "decides about call %s of run %s again", c.id, r.id)
		case c.result != nil:
			s.bad(n, Decisions, "decides about call %s of run %s, which has its result", c.id, r.id)
		default:
			c.decided = true
			c.allowed, _ = frame["allowed"].(bool)
			s.approve(n, frame, c)
		}
	}
}

func (s *one) start(n int64, frame object, r *run) {
	if r.started {
		s.bad(n, Starts, "run %s starts again", r.id)
	}
	r.started, r.tsh, r.client = true, frame.str("op") == "tsh", frame.str("client_id")
	delete(s.unstarted, r.id)
	s.claim(n, r.client, r)
	if r.tsh {
		return
	}
	if r.entry == 0 {
		s.bad(n, Starts, "run %s starts without a message", r.id)
	}
	for _, c := range s.carried {
		c.again = r
	}
	if s.driven != "" {
		s.bad(n, Driven, "run %s starts while %s is open", r.id, s.driven)
	}
	s.driven = r.id
}

func (s *one) call(n int64, c object, r *run) {
	id := c.str("call")
	if r.find(id) != nil {
		s.bad(n, Pairs, "run %s has call %s twice", r.id, id)
	}
	if id == "" || c.str("name") == "" {
		s.bad(n, Pairs, "a call without id or name")
	}
	r.calls = append(r.calls, &call{id: id, name: c.str("name"), keys: keys(c.str("name"), c.object("arguments")), seq: n})
}

func (s *one) result(n int64, p object, r *run, content string) {
	c := s.answerable(p.str("call"), r)
	switch {
	case c == nil:
		s.bad(n, Pairs, "a result of call %s of run %s, which there is not", p.str("call"), r.id)
	case c.result != nil:
		s.bad(n, Pairs, "another result of call %s of run %s", c.id, r.id)
	default:
		if st := p.str("status"); st != "ok" && st != "error" {
			s.bad(n, Pairs, "a result with status %q", st)
		}
		if c.asked.open {
			s.bad(n, Approvals, "a result of call %s while its question is open", c.id)
		}
		c.result, c.resultText = p, content
	}
}

// outcomes are the words a checkpoint may have.
var outcomes = map[string]bool{"completed": true, "failed": true, "cancelled": true, "max_turns": true, "interrupted": true}

func (s *one) checkpoint(n int64, rec object, r *run) {
	s.carry(n, rec, r)
	s.heard(n, r)
	if !outcomes[rec.str("outcome")] {
		s.bad(n, Ends, "outcome %v", rec["outcome"])
	}
	if rec.str("outcome") == "interrupted" {
		s.report.Interrupted++
	}
	if h, ok := rec["head"]; ok && !r.tsh && h != nil {
		s.known(n, rec, "head")
	}
	if s.driven == r.id {
		s.driven = ""
	}
	r.ended = true
}
