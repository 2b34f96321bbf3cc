package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

func (s *suite) place() session.Place {
	owner := asuser.Self()
	if s.w.UID != int(owner.UID) {
		owner = asuser.Identity{UID: uint32(s.w.UID), GID: uint32(s.w.UID)}
	}
	return session.Place{Layout: s.w.Layout, Agent: agent, Owner: owner}
}

func (s *suite) dir(name libctx.Session) string { return s.w.Session(string(agent), string(name)) }

func (s *suite) open(name libctx.Session) *session.Session {
	s.Helper()
	o, err := s.place().Open(name)
	s.must(err)
	return o
}

func (s *suite) commit(o *session.Session, records ...session.Record) {
	s.Helper()
	_, err := o.Commit(records...)
	s.must(err)
}

// begin is the records that a run begins with.
func begin(run libctx.Run, id libctx.ClientID) []session.Record {
	user := &session.Entry{Run: run, Kind: session.KindMessage, Role: session.RoleUser,
		Content: []wire.Part{wire.Text("Look at the files.")}, ClientID: id}
	start := &wire.Start{Head: wire.Head{Type: "start"}, Agent: agent, ClientID: id, Op: "send",
		Scope: "private", Cwd: "/workspace", Workspace: "/work"}
	return []session.Record{user, &session.Fact{Run: run, Payload: "sha256:0", Frame: start}}
}

// says is an assistant message of n characters.
func says(run libctx.Run, n int, calls ...libctx.Call) *session.Entry {
	e := &session.Entry{Run: run, Kind: session.KindMessage, Role: session.RoleAssistant,
		Content: []wire.Part{wire.Text(strings.Repeat("w", n))}}
	for _, c := range calls {
		e.Content = append(e.Content, wire.Part{Type: "tool_call", Call: c, Name: "fs.read", Arguments: jsontext.Value(`{"path":"README.md"}`)})
	}
	return e
}

// turn is a whole run with forty calls, about 60 KiB of ledger.
func turn(id libctx.ClientID) []session.Record {
	run := libctx.NewRun()
	records := begin(run, id)
	for i := range 40 {
		call := libctx.Call(fmt.Sprint("call-", i))
		records = append(records, says(run, 200, call), &session.Entry{
			Run: run, Kind: session.KindMessage, Role: session.RoleTool,
			Content: []wire.Part{{Type: "tool_result", Call: call, Status: "ok", Text: strings.Repeat("r", 800)}}})
	}
	return append(records, &session.Checkpoint{Run: run, Outcome: session.Completed})
}

// commits measures one durable record.
func (s *suite) commits() {
	o := s.open("commit")
	defer o.Close()
	run := libctx.NewRun()
	s.commit(o, begin(run, "m")...)
	f, err := os.OpenFile(s.dir("commit")+"/floor", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	s.must(err)
	defer f.Close()
	line := bytes.Repeat([]byte("x"), 512)
	size := s.size("commit/messages.jsonl")
	all := s.repeat(100, 1000, func() {
		s.commit(o, says(run, 317))
	}, func() {
		_, err := f.Write(line)
		s.must(err)
		s.must(unix.Fdatasync(int(f.Fd())))
	})
	if per := (s.size("commit/messages.jsonl") - size) / 1100; per < 500 || per > 524 {
		s.Fatalf("a record has %d bytes, not about 512", per)
	}
	s.head("durable append")
	s.times("commit of a 512-byte record", all[0], all[1], "append + fdatasync in the same directory")
}

func (s *suite) size(rel string) int64 {
	s.Helper()
	st, err := os.Stat(filepath.Join(s.dir(""), rel))
	s.must(err)
	return st.Size()
}

// sizes are those of the ledgers, in MiB; the last is just below the limit.
var sizes = []int64{1, 32, 256}

func ledger(mib int64) libctx.Session { return libctx.Session(fmt.Sprintf("ledger-%d", mib)) }

// grow makes a session of a size through the store, and returns an index that
// is as old as a crash can leave one on average.
func (s *suite) grow(mib int64) (old []byte) {
	name := ledger(mib)
	o := s.open(name)
	target := mib<<20 - 256<<10 // leaves room for what is sent to it later
	index := s.dir(name) + "/context/ledger.idx"
	for n, have := 0, int64(0); have < target; n++ {
		s.commit(o, turn(libctx.ClientID(fmt.Sprint("m", n)))...)
		if n%8 == 0 || target-have < 1<<20 {
			have = s.size(string(name) + "/messages.jsonl")
		}
		if old == nil && target-have < libctx.IndexEvery/2 {
			s.must(o.Close())
			var err error
			old, err = os.ReadFile(index)
			s.must(err)
			o = s.open(name)
		}
	}
	s.must(o.Close())
	return old
}

// ledgers measures opening for writing, and reading the event log as resume
// does.
func (s *suite) ledgers() {
	s.head("open a session for writing")
	for _, mib := range sizes {
		name := ledger(mib)
		old := s.grow(mib)
		index, file := s.dir(name)+"/context/ledger.idx", s.dir(name)+"/messages.jsonl"
		measure := func(label string, n int, path string, before func()) {
			var got, floor sample
			for range n {
				before()
				var o *session.Session
				all := s.repeat(0, 1, func() { o = s.open(name) }, func() { s.read(path) })
				s.must(o.Close())
				got, floor = append(got, all[0]...), append(floor, all[1]...)
			}
			s.times(fmt.Sprintf("%d MiB, %s", mib, label), got, floor, "read "+filepath.Base(path))
		}
		slow := max(2, int(60/mib))
		measure("index", 50, index, func() {})
		measure("after a crash, index stale", max(9, slow), file, func() { s.must(os.WriteFile(index, old, 0o600)) })
		measure("no index", slow, file, func() { os.Remove(index) })
	}
	s.head("read all events (what resume does in the daemon)")
	for _, mib := range sizes {
		name := ledger(mib)
		events := s.dir(name) + "/events.jsonl"
		size := float64(s.size(string(name) + "/events.jsonl"))
		n := max(5, int(100/mib))
		o := s.open(name)
		all := s.repeat(1, n, func() {
			for off := int64(0); off < o.EventsEnd(); {
				_, next, err := o.ReadEvents(off, 256<<10)
				s.must(err)
				off = next
			}
		}, func() { s.read(events) })
		s.must(o.Close())
		s.figures(fmt.Sprintf("%d MiB", mib), "MB/s", speed(size, all[0]), speed(size, all[1]), n, "read the file, 256 KiB at a time")
	}
}

// speed is in MB/s.
func speed(bytes float64, s sample) float64 { return bytes / 1e6 / s.median().Seconds() }

func (s *suite) read(path string) {
	s.Helper()
	f, err := os.Open(path)
	s.must(err)
	defer f.Close()
	buf := make([]byte, 256<<10)
	for {
		_, err := f.Read(buf)
		if err == io.EOF {
			return
		}
		s.must(err)
	}
}

// replays measures resume through the socket, without following.
func (s *suite) replays() {
	s.head("resume through the socket")
	for _, mib := range sizes {
		name := ledger(mib)
		n := max(3, int(100/mib))
		size := float64(s.size(string(name) + "/events.jsonl"))
		c := s.dial()
		all := s.repeat(1, n, func() {
			c.ask(s, fmt.Sprintf(`{"op":"resume","session":%q}`, name), "end")
		}, func() { s.read(s.dir(name) + "/events.jsonl") })
		c.Close()
		s.figures(fmt.Sprintf("%d MiB", mib), "MB/s", speed(size, all[0]), speed(size, all[1]), n, "read the file, 256 KiB at a time")
	}
}
