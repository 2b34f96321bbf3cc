package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

func TestClientIDs(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run := turn(t, s, "msg-1", "hello", "hi")
	op := libctx.NewRun()
	commit(t, s, beginTsh(op, "tool-1"))
	commit(t, s, &Checkpoint{Run: op, Outcome: Completed})
	for range 2 { // from memory, then from the index
		for id, want := range map[libctx.ClientID]struct {
			run     libctx.Run
			payload string
		}{"msg-1": {run, "sha256:hello"}, "tool-1": {op, "p"}} {
			got, payload, ok, err := s.Client(id)
			if got != want.run || payload != want.payload || !ok || err != nil {
				t.Errorf("%s: %s %s %v %v", id, got, payload, ok, err)
			}
		}
		if _, _, ok, err := s.Client("msg-2"); ok || err != nil {
			t.Errorf("msg-2: %v %v", ok, err)
		}
		before := read(t, p.dir("default")+"/messages.jsonl")
		_, err := s.Commit(begin(s, libctx.NewRun(), "msg-1", "hello")...)
		wantKind(t, err, errdefs.Exists, "msg-1")
		if read(t, p.dir("default")+"/messages.jsonl") != before {
			t.Error("a refused batch left something")
		}
		closeOf(t, s)
		s = open(t, p, "default")
	}
}

// Two ids of one hash are told apart by the records themselves.
func TestClientHashCollision(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "a", "1", "2")
	for h, offs := range s.st.clients.fresh { // as if "b" had the hash of "a"
		delete(s.st.clients.fresh, h)
		s.st.clients.fresh[clientHash("b")] = offs
	}
	if _, _, ok, err := s.Client("b"); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestCommitRefuses(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run, other := libctx.NewRun(), libctx.NewRun()
	commit(t, s, begin(s, run, "m", "x")...)
	commit(t, s, says(run, "", "c1"))
	before := read(t, p.dir("default")+"/messages.jsonl")
	for name, records := range map[string][]Record{
		"run not open":            {says(other, "x")},
		"second start":            {&Fact{Run: run, Frame: &wire.Start{Head: wire.Head{Type: "start"}}}},
		"second driven run":       begin(s, other, "n", "y"),
		"message without start":   begin(s, other, "n", "y")[:2],
		"end with an open call":   {done(run)},
		"unknown call":            {result(run, "c2", "x")},
		"call answered twice":     {result(run, "c1", "x"), result(run, "c1", "x")},
		"entry id used":           {&Entry{ID: "e1", Parent: "e2", Run: run, Kind: KindMessage, Role: RoleAssistant}},
		"entry id skipped":        {&Entry{ID: "e9", Parent: "e2", Run: run, Kind: KindMessage, Role: RoleAssistant}},
		"parent unknown":          {&Entry{ID: "e3", Parent: "e8", Run: run, Kind: KindMessage, Role: RoleAssistant}},
		"head unknown":            {&Head{ID: "e7"}},
		"no role":                 {&Entry{Run: run, Kind: KindMessage}},
		"no outcome":              {&Checkpoint{Run: run}},
		"not UTF-8":               {says(run, "\xff")},
		"no frame":                {&Fact{Run: run}},
		"second session record":   {&SessionStart{Format: 1, Agent: "a", Session: "s"}},
		"good, then bad":          {says(run, "fine"), &Head{ID: "e77"}},
		"call without arguments?": {&Entry{Run: run, Kind: KindMessage, Role: RoleAssistant, Content: []wire.Part{{Type: "tool_call", Name: "n"}}}},
	} {
		if _, err := s.Commit(records...); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantKind(t, err, errdefs.Invalid)
		}
	}
	if read(t, p.dir("default")+"/messages.jsonl") != before {
		t.Error("a refused batch left something")
	}
	commit(t, s, result(run, "c1", "x"))
	commit(t, s, done(run))
	if got, want := s.NextEntryID(), "e4"; got != want {
		t.Errorf("next entry is %s, want %s", got, want)
	}
}

func TestEventsFromAnywhere(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	if lines, next, err := s.ReadEvents(0, 100); lines != nil || next != 0 || err != nil {
		t.Errorf("new session: %q %d %v", lines, next, err)
	}
	if _, err := s.FindRun(testRun); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("new session: %v", err)
	}
	var runs []libctx.Run
	for i := range 40 {
		// Arguments that look like an event, and a log of several chunks.
		run := libctx.NewRun()
		runs = append(runs, run)
		commit(t, s, begin(s, run, libctx.ClientID(fmt.Sprint("m", i)), "x")...)
		call := says(run, strings.Repeat("y", 60<<10), "c")
		call.Content[1].Arguments = []byte(`{"type":"x","id":"` + string(runs[0]) + `.1","run":"x","t":"` + string(run) + `.4"}`)
		commit(t, s, call)
		commit(t, s, result(run, "c", "z"))
		commit(t, s, done(run))
	}
	log := read(t, p.dir("default")+"/events.jsonl")
	for _, run := range []libctx.Run{runs[0], runs[17], runs[39]} {
		off, err := s.FindRun(run)
		if want := strings.Index(log, `{"type":"start","id":"`+string(run)); err != nil || off != int64(want) {
			t.Errorf("run at %d, want %d: %v", off, want, err)
		}
		off, err = s.FindEvent(libctx.MakeEvent(run, 3))
		if want := strings.Index(log, `{"type":"tool_result","id":"`+string(run)); err != nil || off != int64(want) {
			t.Errorf("event 3 ends at %d, want %d: %v", off, want, err)
		}
		if _, err = s.FindEvent(libctx.MakeEvent(run, 6)); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("event 6: %v", err)
		}
	}
	if _, err := s.FindRun(libctx.NewRun()); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("unknown run: %v", err)
	}
	for _, max := range []int{1, 1000, 100_000, 1 << 30} {
		var all strings.Builder
		off := int64(0)
		for {
			lines, next, err := s.ReadEvents(off, max)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if l[len(l)-1] != '\n' {
					t.Errorf("line %q", l)
				}
				all.Write(l)
			}
			if next == off {
				break
			}
			off = next
		}
		if all.String() != log || off != s.EventsEnd() {
			t.Errorf("max %d: read %d bytes of %d", max, all.Len(), len(log))
		}
	}
	_, _, err := s.ReadEvents(s.EventsEnd()+1, 10)
	wantKind(t, err, errdefs.Invalid)
}

func TestConversation(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run := libctx.NewRun()
	commit(t, s, begin(s, run, "m", "question")...)
	commit(t, s, says(run, "", "c1", "c2"))
	commit(t, s, result(run, "c1", strings.Repeat("r", 1000)), &Entry{Run: run, Kind: "skill"})
	commit(t, s, result(run, "c2", strings.Repeat("s", 1000)))
	commit(t, s, says(run, "answer"), done(run))
	ids := func(max int) string {
		entries, err := s.Conversation(max)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.ID)
		}
		return strings.Join(out, " ")
	}
	if got, want := ids(1<<20), "e1 e2 e3 e5 e6"; got != want {
		t.Errorf("all: %s, want %s", got, want)
	}
	if got, want := ids(1000), "e6"; got != want { // a result does not come without its call
		t.Errorf("little: %s, want %s", got, want)
	}
	if got := ids(10); got != "" {
		t.Errorf("nothing fits: %s", got)
	}
	closeOf(t, s)
	s = open(t, p, "default")
	seen := map[string]bool{}
	for max := range 4000 {
		seen[ids(max)] = true
	}
	for _, want := range []string{"", "e6", "e2 e3 e5 e6", "e1 e2 e3 e5 e6"} {
		if !seen[want] || len(seen) != 4 {
			t.Errorf("reopened: %v, want %s among 4", seen, want)
		}
	}
	// Another branch: from the question on again.
	run = libctx.NewRun()
	commit(t, s, &Head{ID: "e1"})
	commit(t, s, append(begin(s, run, "m2", "instead"), says(run, "other"), done(run))...)
	if got, want := ids(1<<20), "e1 e7 e8"; got != want {
		t.Errorf("branch: %s, want %s", got, want)
	}
	commit(t, s, &Head{})
	if got := ids(1 << 20); got != "" || s.Tip() != "" {
		t.Errorf("empty branch: %s, tip %s", got, s.Tip())
	}
	commit(t, s, &Head{ID: "e6"})
	closeOf(t, s)
	// Damage that appears later is found where it is read.
	ledger := p.dir("default") + "/messages.jsonl"
	b := []byte(read(t, ledger))
	s = open(t, p, "default")
	for i := range b[s.st.offs[1] : s.st.offs[1]+20] {
		b[int(s.st.offs[1])+i] = 'x'
	}
	f, err := os.OpenFile(ledger, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	_, err = s.Conversation(1 << 20)
	wantKind(t, err, errdefs.IO, "messages.jsonl", fmt.Sprintf("offset %d", s.st.offs[1]))
}

func TestLimits(t *testing.T) {
	for name, l := range map[string]limits{
		"bytes":   {record: 1 << 20, ledger: 40_000, reserve: 20_000, records: 1 << 20, reserveRecords: 10},
		"records": {record: 1 << 20, ledger: 1 << 20, reserve: 20_000, records: 60, reserveRecords: 30},
	} {
		t.Run(name, func(t *testing.T) {
			p := place(t)
			s := open(t, p, "default")
			s.limits = l
			n := 0
			for ; s.Room() == nil; n++ {
				turn(t, s, libctx.ClientID(fmt.Sprint("m", n)), strings.Repeat("x", 400), "y")
				if n == 1 {
					break
				}
			}
			run := libctx.NewRun()
			commit(t, s, append(begin(s, run, "last", "x"), says(run, "", "c1"))...)
			var err error
			for err == nil {
				_, err = s.Commit(says(run, strings.Repeat("x", 300)))
			}
			wantKind(t, err, errdefs.NoSpace, "another session")
			s.limits.ledger = min(s.limits.ledger, s.st.size+s.limits.reserve-1)
			wantKind(t, s.Room(), errdefs.NoSpace, "full")
			// A large result does not fit; its error, and the end, do.
			_, err = s.Commit(result(run, "c1", strings.Repeat("x", 30_000)))
			wantKind(t, err, errdefs.NoSpace)
			commit(t, s, result(run, "c1", "no space"))
			commit(t, s, &Usage{Run: run, Kind: "assistant"}, &Checkpoint{Run: run, Outcome: Failed, Code: errdefs.NoSpace, Message: "full"})
			if _, err := s.Commit(begin(s, libctx.NewRun(), "n", "x")...); !errdefs.Is(err, errdefs.NoSpace) {
				t.Errorf("a new run: %v", err)
			}
			closeOf(t, s)
			s = open(t, p, "default")
			if got := s.Info().State; got != StateError {
				t.Errorf("state %s", got)
			}
		})
	}
	p := place(t)
	s := open(t, p, "default")
	s.limits.record = 500
	_, err := s.Commit(begin(s, libctx.NewRun(), "m", strings.Repeat("x", 500))...)
	wantKind(t, err, errdefs.NoSpace, "record", "500")
	if _, err := os.Stat(p.dir("default")); err == nil {
		t.Error("a refused batch made a directory")
	}
}

func TestHugeLedgerIsRefused(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "m", "x", "y")
	closeOf(t, s)
	if err := os.Truncate(p.dir("default")+"/messages.jsonl", 2*libctx.MaxLedger); err != nil {
		t.Fatal(err)
	}
	_, err := p.Open("default")
	wantKind(t, err, errdefs.NoSpace, "messages.jsonl", fmt.Sprint(libctx.MaxLedger))
	infos, err := p.List()
	if err != nil || len(infos) != 1 {
		t.Errorf("list: %v %v", infos, err)
	}
}

func TestThirtyMegabyteRecord(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	run := libctx.NewRun()
	commit(t, s, append(begin(s, run, "m", "x"), says(run, "", "c"))...)
	big := strings.Repeat("0123456789abcdef", 30<<20/16)
	events := commit(t, s, result(run, "c", big))
	if n := len(events[0].Line); n > libctx.MaxFrame {
		t.Errorf("frame of %d bytes", n)
	}
	commit(t, s, says(run, "small"), done(run))
	if _, err := s.Commit(begin(s, libctx.NewRun(), "n", big+"0123456789abcdef"+big)...); !errdefs.Is(err, errdefs.NoSpace) {
		t.Errorf("60 MiB: %v", err)
	}
	closeOf(t, s)
	os.Remove(p.dir("default") + "/" + indexFile)
	s = open(t, p, "default")
	if got, err := s.Conversation(64 << 10); err != nil || len(got) != 1 || got[0].Text() != "small" {
		t.Errorf("%d entries, %v", len(got), err)
	}
	if got, err := s.Conversation(40 << 20); err != nil || len(got) != 4 || got[2].Content[0].Text != big {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

// The order is that of the ledger, whatever the clock says.
func TestClockJumps(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s.now = func() time.Time { now = now.Add(-24 * time.Hour); return now }
	for i := range 3 {
		turn(t, s, libctx.ClientID(fmt.Sprint("m", i)), fmt.Sprint("q", i), "a")
	}
	closeOf(t, s)
	os.Remove(p.dir("default") + "/" + indexFile)
	s = open(t, p, "default")
	entries, err := s.Conversation(1 << 20)
	if err != nil || len(entries) != 6 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i := range 3 {
		if got := entries[2*i].Text(); got != fmt.Sprint("q", i) {
			t.Errorf("entry %d is %q", 2*i, got)
		}
	}
	if s.Info().State != StateDone {
		t.Errorf("state %s", s.Info().State)
	}
}

func TestPrivateWhateverTheUmask(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for _, mask := range []int{0, 0o777 &^ 0o700, 0o277} {
		unix.Umask(0o022)
		p := place(t)
		unix.Umask(mask)
		s := open(t, p, "default")
		turn(t, s, "m", "x", "y")
		closeOf(t, s)
		if err := p.SetCurrent("default"); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, dir := range []string{filepath.Join(p.Layout.Root, "home"), p.Layout.Locks} {
			err := filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
				if err != nil {
					return err
				}
				seen++
				want := os.FileMode(0o600)
				if fi.IsDir() {
					want = 0o700
				}
				if got := fi.Mode().Perm(); got != want && (fi.IsDir() || filepath.Dir(path) != p.Layout.Locks) {
					t.Errorf("umask %o: %s has mode %o", mask, path, got)
				}
				if fi.Mode().Perm()&0o077 != 0 {
					t.Errorf("umask %o: %s is not private", mask, path)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if seen < 20 {
			t.Errorf("looked at %d files", seen)
		}
	}
}

func TestNames(t *testing.T) {
	p := place(t)
	for _, name := range []libctx.Session{"", ".", "..", "a/b", "a\x00", "a\nb", "index", "x.d", libctx.Session(strings.Repeat("x", 65))} {
		for what, err := range map[string]error{
			"open":    func() error { _, err := p.Open(name); return err }(),
			"read":    func() error { _, err := p.Read(name); return err }(),
			"current": p.SetCurrent(name),
		} {
			if !errdefs.Is(err, errdefs.Invalid) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	if _, err := (Place{Layout: p.Layout, Agent: "../x", Owner: p.Owner}).Open("default"); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("agent: %v", err)
	}
	entries, err := os.ReadDir(p.Layout.Root)
	if err != nil || len(entries) != 0 {
		t.Errorf("tree has %v (%v)", entries, err)
	}
}

// A link anywhere on the way is refused and what it leads to stays as it is.
func TestLinks(t *testing.T) {
	for _, link := range []string{"home", "session", "default", "messages.jsonl", "events.jsonl"} {
		p := place(t)
		outside := filepath.Join(t.TempDir(), "outside")
		s := open(t, p, "default")
		turn(t, s, "m", "x", "y")
		closeOf(t, s)
		at := map[string]string{"home": filepath.Join(p.Layout.Root, "home"), "session": filepath.Join(p.Layout.Root, p.sessions()), "default": p.dir("default")}[link]
		if at == "" {
			at = p.dir("default") + "/" + link
		}
		if err := os.Rename(at, outside); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, at); err != nil {
			t.Fatal(err)
		}
		before := treeOf(t, outside)
		if s, err := p.Open("default"); err == nil {
			s.Close()
			t.Errorf("%s: opened through a link", link)
		}
		if link != "events.jsonl" { // which a reader does not open
			if r, err := p.Read("default"); err == nil {
				r.Close()
				t.Errorf("%s: read through a link", link)
			}
		}
		if after := treeOf(t, outside); after != before {
			t.Errorf("%s: changed\n%s\nto\n%s", link, before, after)
		}
	}
}

// treeOf is names, modes, times and content of everything below a path.
func treeOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, fi.Mode(), fi.ModTime().UnixNano(), fi.Size())
		if fi.Mode().IsRegular() {
			fmt.Fprintln(&b, read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestListAndCurrent(t *testing.T) {
	p := place(t)
	if got, err := p.Current(); got != "default" || err != nil {
		t.Errorf("current of nothing: %s %v", got, err)
	}
	if got, err := p.List(); got != nil || err != nil {
		t.Errorf("list of nothing: %v %v", got, err)
	}
	for _, name := range []libctx.Session{"one", "two", "three", "one"} {
		s := open(t, p, name)
		turn(t, s, libctx.ClientID("m"+fmt.Sprint(s.Info().Turns)), "x", "y")
		closeOf(t, s)
	}
	if err := p.SetCurrent("two"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Current(); got != "two" || err != nil {
		t.Errorf("current: %s %v", got, err)
	}
	os.MkdirAll(p.dir("empty"), 0o700)
	write(t, p.dir("broken")+"/messages.jsonl", "no\n")
	before := treeOf(t, p.Layout.Root)
	infos, err := p.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range infos {
		names = append(names, string(i.Session))
		if (i.Damage != "") != (i.Session == "broken") {
			t.Errorf("%s: damage %q", i.Session, i.Damage)
		}
	}
	if want := []string{"one", "three", "two", "broken"}; !slices.Equal(names, want) {
		t.Errorf("list is %v, want %v", names, want)
	}
	if i := infos[0]; i.Turns != 2 || i.State != StateDone || i.Workspace != "/home/a/src" || i.Cwd != "/workspace" || i.Updated.IsZero() || i.Bytes == 0 {
		t.Errorf("info is %+v", i)
	}
	if treeOf(t, p.Layout.Root) != before {
		t.Error("List changed something")
	}
	write(t, filepath.Join(p.Layout.Root, p.sessions(), "index/current"), "../x\n")
	_, err = p.Current()
	wantKind(t, err, errdefs.Invalid)
}

// What is derived can be deleted; the next run makes it again.
func TestProjectionsComeBack(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "m1", "x", "y")
	closeOf(t, s)
	dir := p.dir("default")
	log := read(t, dir+"/events.jsonl")
	files := []string{"state", "latest.md", "cwd", "created_at", "updated_at", "meta.json", "events.jsonl", indexFile, "../index/list"}
	for _, f := range files {
		if err := os.RemoveAll(filepath.Join(dir, f)); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, p, "default")
	if got := read(t, dir+"/events.jsonl"); got != log {
		t.Errorf("events are\n%swant\n%s", got, log)
	}
	turn(t, s, "m2", "x", "z")
	closeOf(t, s)
	for _, f := range files {
		read(t, filepath.Join(dir, f))
	}
}

// A projection that can not be written fails nothing.
func TestProjectionFails(t *testing.T) {
	p := place(t)
	s := open(t, p, "default")
	turn(t, s, "m1", "x", "y")
	for _, f := range []string{"state", "latest.md", "updated_at"} {
		os.Remove(p.dir("default") + "/" + f)
		write(t, p.dir("default")+"/"+f+"/in/the/way", "")
	}
	turn(t, s, "m2", "x", "z")
	closeOf(t, s)
}

func TestClosed(t *testing.T) {
	s := open(t, place(t), "default")
	closeOf(t, s)
	closeOf(t, s)
	if _, err := s.Commit(&Head{}); err == nil {
		t.Error("Commit after Close")
	}
	if _, err := s.Conversation(1); err == nil {
		t.Error("Conversation after Close")
	}
}
