package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 5e6, time.UTC)

// The lines are what docs/reference/terminal.md says.
func TestEventLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/terminal.md")
	if err != nil {
		t.Fatal(err)
	}
	for want, e := range map[string]Event{
		`{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"resize","cols":80,"rows":24}`:                 {Seq: 1, Time: noon, Type: EventResize, Size: termwire.Size{Cols: 80, Rows: 24}},
		`{"seq":2,"ts":"2026-11-30T12:00:00.005Z","type":"pty.output","data_b64":"aGVsbG8NCg=="}`:       {Seq: 2, Time: noon, Type: EventOutput, Data: []byte("hello\r\n")},
		`{"seq":4,"ts":"2026-11-30T12:00:00.005Z","type":"process.exit","exit_code":0}`:                 {Seq: 4, Time: noon, Type: EventExit},
		`{"seq":3,"ts":"2026-11-30T12:00:00.005Z","type":"tsh.policy","name":"fs.read","allowed":true}`: {Seq: 3, Time: noon, Type: EventPolicy, Rest: jsontext.Value(`{"name":"fs.read","allowed":true}`)},
	} {
		got, err := e.Append([]byte("x"))
		if err != nil || string(got) != "x"+want+"\n" {
			t.Errorf("%s\nnot %s, %v", got, want, err)
		}
		back, err := ParseEvent([]byte(want))
		if d := cmp.Diff(e, back); err != nil || d != "" {
			t.Errorf("%s: %v\n%s", want, err, d)
		}
		if !strings.Contains(string(page), want) && e.Type != EventPolicy {
			t.Errorf("docs/reference/terminal.md has no %s", want)
		}
	}
	for _, bad := range []string{
		`{}`, `{"seq":0,"ts":"2026-11-30T12:00:00.005Z","type":"x"}`, `{"seq":1,"ts":"yesterday","type":"x"}`, `{"seq":1,"ts":"2026-11-30T12:00:00.005Z"}`,
		`{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"pty.output"}`, `{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"pty.output","data_b64":"x"}`,
		`{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"process.exit"}`, `{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"resize","cols":0,"rows":1}`,
	} {
		if _, err := ParseEvent([]byte(bad)); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := (Event{Seq: 1, Type: EventOutput, Data: make([]byte, libctx.MaxTermEvent)}).Append(nil); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("a line over the limit: %v", err)
	}
	if _, err := (Event{Seq: 1, Type: EventPolicy, Rest: jsontext.Value(`[]`)}).Append(nil); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("a rest that is no object: %v", err)
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"seq":1,"ts":"2026-11-30T12:00:00.005Z","type":"resize","cols":80,"rows":24}`))
	f.Add([]byte(`{"seq":2,"ts":"2026-11-30T12:00:00.005Z","type":"pty.output","data_b64":"aGVsbG8NCg=="}`))
	f.Add([]byte(`{"seq":3,"ts":"2026-11-30T12:00:00.005Z","type":"process.exit","exit_code":143,"more":[1]}`))
	f.Add([]byte(`{"seq":3,"ts":"2026-11-30T12:00:00.005Z","type":"tsh.policy","allowed":false}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEvent(text)
		if err != nil {
			if !errdefs.Is(err, errdefs.Invalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := e.Append(nil)
		if err != nil {
			if errdefs.Is(err, errdefs.TooBig) {
				return
			}
			t.Fatal(err)
		}
		got, err := ParseEvent(again)
		if err != nil || got.Seq != e.Seq || !got.Time.Equal(e.Time) || got.Type != e.Type || !bytes.Equal(got.Data, e.Data) || got.Size != e.Size || got.ExitCode != e.ExitCode {
			t.Fatalf("%s: %+v, %v", again, got, err)
		}
	})
}

// lines are events with these numbers.
func lines(t *testing.T, seqs ...uint64) string {
	t.Helper()
	var text []byte
	for _, n := range seqs {
		var err error
		if text, err = (Event{Seq: n, Time: noon, Type: EventOutput, Data: []byte("x")}).Append(text); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}

func TestEvents(t *testing.T) {
	p := place(t, "default")
	create(t, p)
	at := p.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session)
	put := func(n int, text string) {
		if err := os.WriteFile(filepath.Join(at, EventFile(n)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := func() ([]uint64, []string) {
		e, err := p.Events()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return read(t, e)
	}
	if seqs, damage := all(); len(seqs)+len(damage) > 0 {
		t.Errorf("of nothing: %v, %v", seqs, damage)
	}
	put(2, lines(t, 1, 2))
	put(1, lines(t, 3, 4))
	put(0, lines(t, 5)+`{"seq":6,"ts":`)
	if seqs, damage := all(); !cmp.Equal(seqs, []uint64{1, 2, 3, 4, 5}) || len(damage) > 0 {
		t.Errorf("%v, %v", seqs, damage)
	}
	// One file is missing, one has damage inside, one goes back.
	if err := os.Remove(filepath.Join(at, EventFile(2))); err != nil {
		t.Fatal(err)
	}
	put(3, lines(t, 1)+"{\n"+lines(t, 2)+strings.Repeat("x", libctx.MaxTermEvent+1)+"\n"+lines(t, 3))
	put(0, lines(t, 4, 6))
	put(1, lines(t, 5))
	seqs, damage := all()
	if !cmp.Equal(seqs, []uint64{1, 2, 5, 6}) || len(damage) != 3 || !strings.HasPrefix(damage[0], "events.3.jsonl: line 2: ") ||
		!strings.HasPrefix(damage[1], "events.3.jsonl: line 4: ") || !strings.HasPrefix(damage[2], "events.jsonl: line 1: ") {
		t.Errorf("%v, %q", seqs, damage)
	}
}

// What is rotated away while it is read is still read once.
func TestEventsDuringRotation(t *testing.T) {
	p := place(t, "default")
	create(t, p)
	at := p.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session)
	newest, older := filepath.Join(at, EventFile(0)), filepath.Join(at, EventFile(1))
	if err := os.WriteFile(newest, []byte(lines(t, 1, 2)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(newest, older); err != nil { // the moment in which a file is seen under both names
		t.Fatal(err)
	}
	e, err := p.Events()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if seqs, damage := read(t, e); !cmp.Equal(seqs, []uint64{1, 2}) || len(damage) > 0 {
		t.Errorf("%v, %v", seqs, damage)
	}
}
