package wire

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// vectors returns the lines of PROTOCOL.md that begin with this mark.
func vectors(t testing.TB, mark string) []string {
	t.Helper()
	text, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark+" "); ok {
			found = append(found, v)
		}
	}
	if len(found) < 10 {
		t.Fatalf("PROTOCOL.md holds %d examples marked %s", len(found), mark)
	}
	return found
}

func TestProtocolRequests(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range vectors(t, "→") {
		r, err := DecodeRequest([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[r.Op()] = true
		// What we write ourselves means the same.
		sent, err := MarshalRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(sent)
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		if d := cmp.Diff(r, again); d != "" {
			t.Errorf("%s:\n%s", line, d)
		}
	}
	for _, op := range Ops() {
		if !seen[op] {
			t.Errorf("PROTOCOL.md has no example of %s", op)
		}
	}
}

func TestProtocolRefusals(t *testing.T) {
	for _, line := range vectors(t, "✗") {
		r, err := DecodeRequest([]byte(line))
		if r != nil || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: got %v, %v", line, r, err)
		}
	}
}

func TestProtocolFrames(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range vectors(t, "←") {
		f, err := DecodeFrame([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if _, ok := f.(*Other); ok {
			t.Errorf("%s: not a frame this version knows", line)
		}
		seen[f.Header().Type] = true
		sent, err := MarshalFrame(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(string(sent), "\n"); got != line {
			t.Errorf("sent as %s\nnot     %s", got, line)
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("PROTOCOL.md has no example of %s", kind)
		}
	}
}

func TestUnknownFrame(t *testing.T) {
	line := []byte(`{"type":"weather","run":"01KB9QZ3M8T5V2N7X4C6D1E0FG","text":"rain"}`)
	f, err := DecodeFrame(line)
	if err != nil {
		t.Fatal(err)
	}
	o, ok := f.(*Other)
	if !ok || o.Type != "weather" || !bytes.Equal(o.Raw, line) {
		t.Fatalf("got %#v", f)
	}
	line[2] = 'x' // the frame owns its memory
	if o.Raw[2] != 't' {
		t.Error("Raw shares memory with the line")
	}
}

// sameJSON compares JSON that is passed on as it is, but for its blanks and the way
// its strings are written.
func sameJSON(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Format() == nil && b.Format() == nil && bytes.Equal(a, b)
}

// A request whose strings hold anything comes out as it went in.
func FuzzDecodeRequest(f *testing.F) {
	for _, mark := range []string{"→", "✗"} {
		for _, line := range vectors(f, mark) {
			f.Add([]byte(line))
		}
	}
	f.Add([]byte("{\"op\":\"receipt\",\"receipt\":{\"terminal\" \r\t: { \"unit\":\"\\u0061\"}}}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := DecodeRequest(line)
		if err != nil {
			if r != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%v with %v", err, r)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		sent, err := MarshalRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(sent)
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		if d := cmp.Diff(r, again, cmp.Comparer(sameJSON)); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	for _, line := range vectors(f, "←") {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		frame, err := DecodeFrame(line)
		if err != nil {
			if frame != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%v with %v", err, frame)
			}
			return
		}
		if _, ok := frame.(*Other); ok {
			return
		}
		sent, err := json.Marshal(frame, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeFrame(sent)
		if err != nil {
			// Only a frame without a name it ought to have.
			if !strings.Contains(err.Error(), "is empty") {
				t.Fatalf("%s: %v", sent, err)
			}
			return
		}
		twice, err := json.Marshal(again, json.Deterministic(true))
		if err != nil || !bytes.Equal(sent, twice) {
			t.Fatalf("%s\nthen %s, %v", sent, twice, err)
		}
	})
}
