package session

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// sampleFiles is a session with every kind of record, an end that is open, and
// what is beside its ledger.
func sampleFiles(t testing.TB) (ledger, events, index []byte) {
	t.Helper()
	dir := t.TempDir()
	p := placeIn(dir)
	s, err := p.Open("default")
	if err != nil {
		t.Fatal(err)
	}
	run, op, last := libctx.NewRun(), libctx.NewRun(), libctx.NewRun()
	for _, batch := range [][]Record{
		{agentStart()},
		begin(s, run, "m1", "question"),
		{says(run, "let me see", "c1"), &Usage{Run: run, Kind: "assistant", Model: "p/m", Input: 3, Output: 4}},
		{result(run, "c1", "seen")},
		{agentStop()},
		{says(run, "answer"), &UsageUncertain{Run: run, Kind: "assistant", Model: "p/m"}},
		{done(run)},
		{beginTsh(op, "t1"), tshCall(op, "c1")},
	} {
		if _, err := s.Commit(batch...); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.writeIndex(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(begin(s, last, "m2", "again")...); err != nil {
		t.Fatal(err)
	}
	s.die()
	for name, text := range map[string]*[]byte{ledgerFile: &ledger, eventsFile: &events, indexFile: &index} {
		if *text, err = os.ReadFile(filepath.Join(p.dir("default"), name)); err != nil {
			t.Fatal(err)
		}
	}
	return ledger, events, index
}

// everything is the bytes of all files below a directory.
func everything(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			all[path] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameFiles(t testing.TB, what string, before, after map[string]string) {
	t.Helper()
	for path, text := range before {
		if now, ok := after[path]; !ok || now != text {
			t.Errorf("%s changed %s", what, path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s made %s", what, path)
		}
	}
}

// FuzzLedger puts any bytes where a session's files are. Reading changes none of
// them and either shows every line or says which are damaged; opening for
// writing either keeps every whole line and agrees with itself, or says why not
// and changes nothing.
func FuzzLedger(f *testing.F) {
	ledger, events, index := sampleFiles(f)
	f.Add(ledger, events, index)
	f.Add(ledger, []byte{}, []byte{})
	f.Add(ledger[:len(ledger)-9], events, index)
	f.Add(ledger, events[:len(events)/2], []byte("no index"))
	f.Add(bytes.Replace(ledger, []byte(`"parent":"e1"`), []byte(`"parent":"e7"`), 1), events, []byte{})
	f.Add(bytes.Replace(ledger, []byte(`"type":"head"`), []byte(`"type":"tail"`), 1), events, []byte{})
	f.Add(bytes.Replace(ledger, []byte(`"format":1`), []byte(`"format":2`), 1), events, index)
	f.Add(bytes.Repeat([]byte("\n"), 10), []byte("{}\n"), []byte(indexMagic))
	f.Add([]byte{}, []byte{}, []byte{})
	base := f.TempDir()
	if dir, err := os.MkdirTemp("/dev/shm", "cortexfs-fuzz-"); err == nil {
		base = dir
		f.Cleanup(func() { os.RemoveAll(dir) })
	}
	f.Fuzz(func(t *testing.T, ledger, events, index []byte) {
		dir, err := os.MkdirTemp(base, "s")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := placeIn(dir)
		home := p.dir("default")
		if err := os.MkdirAll(home+"/context", 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{ledgerFile: ledger, eventsFile: events, indexFile: index} {
			if err := os.WriteFile(filepath.Join(home, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before := everything(t, home)
		damaged := readAll(t, p, ledger)
		sameFiles(t, "reading", before, everything(t, home))

		s, err := p.Open("default")
		if err != nil {
			if !errdefs.Is(err, errdefs.IO) && !errdefs.Is(err, errdefs.Invalid) {
				t.Errorf("opening: %v", err)
			}
			if !damaged {
				t.Errorf("opening for writing finds %v, reading finds nothing", err)
			}
			sameFiles(t, "a refused opening", before, everything(t, home))
			return
		}
		defer s.Close()
		if damaged {
			t.Error("opening for writing finds nothing, reading does")
		}
		whole := ledger[:bytes.LastIndexByte(ledger, '\n')+1]
		now, err := os.ReadFile(filepath.Join(home, ledgerFile))
		if err != nil || !bytes.HasPrefix(now, whole) {
			t.Errorf("opening took something away: %q, was %q (%v)", now, whole, err)
		}
		if s.st.seq > 0 {
			checkFold(t, p, s, now)
		}
	})
}

// readAll reads a session to its end in every way and reports whether it says
// that the ledger is damaged.
func readAll(t *testing.T, p Place, ledger []byte) bool {
	r, err := p.Read("default")
	if err != nil {
		t.Errorf("reading: %v", err)
		return false
	}
	defer r.Close()
	n, bad := bytes.Count(ledger, []byte("\n")), 0
	for i := 1; ; i++ {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			if i != n+1 {
				t.Errorf("%d lines of %d", i-1, n)
			}
			break
		}
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		if l.N != int64(i) || l.Record == nil && l.Err == nil {
			t.Errorf("line %d: %+v", i, l)
		}
		if l.Err != nil {
			bad++
			var d *Damage
			if !errors.As(l.Err, &d) || d.Line != l.N || d.Offset != l.Offset || !strings.Contains(l.Err.Error(), "line ") {
				t.Errorf("line %d is damaged, and where is %v", i, l.Err)
			}
		}
	}
	list := r.Damage()
	if (bad > 0) != (len(list) > 0) {
		t.Errorf("%d damaged lines, %d in the list", bad, len(list))
	}
	for range r.Branch() {
	}
	if _, err := r.Latest(); err != nil && len(list) == 0 {
		t.Errorf("latest: %v", err)
	}
	if (r.Info().Damage != "") != (len(list) > 0) {
		t.Errorf("info says %q", r.Info().Damage)
	}
	return len(list) > 0
}

// checkFold is what holds of any session that is open: its memory and its event
// log are those of its ledger, and no run is.
func checkFold(t *testing.T, p Place, s *Session, ledger []byte) {
	st := newState()
	if err := scan(bytes.NewReader(ledger), st, int64(len(ledger)), nil); err != nil {
		t.Fatalf("the ledger of an open session: %v", err)
	}
	if a, b := (&index{state: st}).encode(), (&index{state: s.st}).encode(); !bytes.Equal(a, b) {
		t.Errorf("the state in memory is not the one of the ledger:\n%+v\n%+v", s.st, st)
	}
	want, err := freshFold(ledger)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if got, err := os.ReadFile(filepath.Join(p.dir("default"), eventsFile)); err != nil || string(got) != want {
		t.Errorf("events are %q (%v), the fold is %q", got, err, want)
	}
	if len(st.fold.runs) > 0 || st.unstarted != 0 {
		t.Errorf("open runs %v, message without start e%d", st.fold.runs, st.unstarted)
	}
}
