package session

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"golang.org/x/sys/unix"
)

// record512 is an entry whose line is 512 bytes.
func record512(run libctx.Run) *Entry { return says(run, strings.Repeat("x", 312)) }

// The floor of a commit: the same bytes, appended and synced, in a directory
// beside.
func BenchmarkFloorAppend512(b *testing.B) {
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "floor"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := bytes.Repeat([]byte("x"), 512)
	for b.Loop() {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommit512(b *testing.B) {
	s := open(b, place(b), "default")
	run := libctx.NewRun()
	commit(b, s, begin(s, run, "m", "q")...)
	size := s.st.size
	n := int64(0)
	for b.Loop() {
		if _, err := s.Commit(record512(run)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(s.st.size-size)/float64(n), "bytes/record")
}

// BenchmarkRun is a whole run with its projections: two commits.
func BenchmarkRun(b *testing.B) {
	s := open(b, place(b), "default")
	n := 0
	for b.Loop() {
		n++
		turn(b, s, libctx.ClientID(fmt.Sprint("m", n)), "q", "a")
	}
}

// grown is a session whose ledger has about size bytes, in records of about
// 600 bytes, runs of a hundred. It is written without syncs, and its event log
// and index by the store itself.
func grown(b *testing.B, size int64) Place {
	b.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("cortexfs-bench-%d-%d", os.Getuid(), size))
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	p := placeIn(dir)
	st := newState()
	s := &Session{place: p, name: "default", limits: standard, st: st}
	if err := os.MkdirAll(p.dir("default"), 0o700); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(p.dir("default") + "/messages.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	put := func(records ...Record) {
		var out []byte
		for _, r := range records {
			s.fill(r, "2026-11-30T12:00:00.000Z")
			line, err := encode(r)
			if err != nil {
				b.Fatal(err)
			}
			br, err := decodeBrief(line)
			if err != nil {
				b.Fatal(err)
			}
			if err := st.take(line, br); err != nil {
				b.Fatal(err)
			}
			out = append(out, line...)
		}
		if _, err := f.Write(out); err != nil {
			b.Fatal(err)
		}
	}
	put(&SessionStart{Format: 1, Agent: "coder", Session: "default"})
	for n := 0; st.size < size-100_000; n++ {
		run := libctx.NewRun()
		e := &Entry{Run: run, Kind: KindMessage, Role: RoleUser, ClientID: libctx.ClientID(fmt.Sprint("m", n)), Content: says(run, "q").Content}
		put(e)
		put(&Head{ID: e.ID}, begin(s, run, e.ClientID, "q")[2])
		for i := range 40 {
			call := libctx.Call(fmt.Sprint("call-", i))
			put(says(run, strings.Repeat("w", 200), call))
			put(result(run, call, strings.Repeat("r", 500)), &Usage{Run: run, Kind: "assistant", Model: "p/m", Input: 1})
		}
		put(done(run))
	}
	o, err := p.Open("default")
	if err != nil {
		b.Fatal(err)
	}
	closeOf(b, o)
	return p
}

var sizes = []int64{1 << 20, 32 << 20, libctx.MaxLedger - 1<<20}

// Opening costs the tail, not the history: with the index nothing of the ledger
// is read.
func BenchmarkOpen(b *testing.B) {
	for _, size := range sizes {
		p := grown(b, size)
		run := func(name string, before func()) {
			b.Run(fmt.Sprintf("%dMiB/%s", (size+1<<19)>>20, name), func(b *testing.B) {
				for b.Loop() {
					if before != nil {
						b.StopTimer()
						before()
						b.StartTimer()
					}
					s, err := p.Open("default")
					if err != nil {
						b.Fatal(err)
					}
					s.die()
				}
			})
		}
		file := p.dir("default") + "/messages.jsonl"
		run("index", nil)
		run("index-touched", func() { // the checksum decides
			if err := os.Chmod(file, 0o600); err != nil {
				b.Fatal(err)
			}
		})
		run("no-index", func() { os.Remove(p.dir("default") + "/" + indexFile) })
	}
}

// BenchmarkReplay reads the whole event log as resume does.
func BenchmarkReplay(b *testing.B) {
	for _, size := range sizes {
		p := grown(b, size)
		s := open(b, p, "default")
		b.Run(fmt.Sprintf("%dMiB", (size+1<<19)>>20), func(b *testing.B) {
			b.SetBytes(s.EventsEnd())
			for b.Loop() {
				for off := int64(0); ; {
					_, next, err := s.ReadEvents(off, 256<<10)
					if err != nil {
						b.Fatal(err)
					}
					if next == off {
						break
					}
					off = next
				}
			}
		})
		b.Run(fmt.Sprintf("%dMiB/find-first", (size+1<<19)>>20), func(b *testing.B) {
			lines, _, err := s.ReadEvents(0, 1)
			if err != nil {
				b.Fatal(err)
			}
			id := libctx.Event(strings.Split(string(lines[0]), `"`)[7])
			for b.Loop() {
				if _, err := s.FindEvent(id); err != nil {
					b.Fatal(err)
				}
			}
		})
		closeOf(b, s)
	}
}

// BenchmarkConversation reads the history of a run in a session of many short
// messages: for the first run, and for the next one.
func BenchmarkConversation(b *testing.B) {
	s := open(b, place(b), "default")
	for n := range 1000 {
		turn(b, s, libctx.ClientID(fmt.Sprint("m", n)), "a question", "an answer")
	}
	read := func(b *testing.B) {
		if _, err := s.Conversation(256 << 10); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			s.recent = nil
			read(b)
		}
	})
	b.Run("next", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			turn(b, s, libctx.ClientID(fmt.Sprint("n", n)), "a question", "an answer")
			b.StartTimer()
			read(b)
		}
	})
}
