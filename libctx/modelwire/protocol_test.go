package modelwire

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

// vectors returns the lines of docs/reference/model.md that begin with a mark.
func vectors(t testing.TB, mark string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/model.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark+" "); ok {
			found = append(found, v)
		}
	}
	if len(found) < 5 {
		t.Fatalf("model.md holds %d examples marked %s", len(found), mark)
	}
	return found
}

func TestRequestsOfTheReference(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range vectors(t, "→") {
		r, err := DecodeRequest([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[r.Op()] = true
		sent, err := MarshalRequest(r)
		if got := strings.TrimSuffix(string(sent), "\n"); err != nil || got != line {
			t.Errorf("sent as %s\nnot     %s\n%v", got, line, err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("there are examples of %v", seen)
	}
}

func TestRefusalsOfTheReference(t *testing.T) {
	for _, line := range vectors(t, "✗") {
		if r, err := DecodeRequest([]byte(line)); r != nil || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v, %v", line, r, err)
		} else if s := err.Error(); strings.Contains(s, "\n") || strings.Contains(s, "Go ") || len(s) > 300 {
			t.Errorf("%s: not a short plain line: %q", line, s)
		}
	}
}

func TestFramesOfTheReference(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range vectors(t, "←") {
		f, err := DecodeFrame([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[f.Kind()] = true
		sent, err := MarshalFrame(f)
		if got := strings.TrimSuffix(string(sent), "\n"); err != nil || got != line {
			t.Errorf("sent as %s\nnot     %s\n%v", got, line, err)
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("model.md has no example of %s", kind)
		}
	}
}

// A request that is accepted is sent as a line that is accepted alike.
func FuzzDecodeRequest(f *testing.F) {
	for _, mark := range []string{"→", "✗"} {
		for _, line := range vectors(f, mark) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodeRequest(text)
		if err != nil {
			if r != nil || errdefs.KindOf(err) != errdefs.Invalid || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %q", r, err)
			}
			return
		}
		sent, err := MarshalRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(bytes.TrimSuffix(sent, []byte("\n")))
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		twice, err := MarshalRequest(again)
		if err != nil || !bytes.Equal(sent, twice) {
			t.Fatalf("%s\nthen %s\n%v", sent, twice, err)
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	for _, line := range vectors(f, "←") {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"type":"weather","text":"rain"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		frame, err := DecodeFrame(text)
		if err != nil {
			if frame != nil || errdefs.KindOf(err) != errdefs.Invalid && errdefs.KindOf(err) != errdefs.TooBig || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %q", frame, err)
			}
			return
		}
		if _, ok := frame.(*Other); ok {
			return
		}
		sent, err := MarshalFrame(frame)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeFrame(bytes.TrimSuffix(sent, []byte("\n")))
		if err != nil {
			t.Fatalf("%s: %v", sent, err)
		}
		twice, err := MarshalFrame(again)
		if err != nil || !bytes.Equal(sent, twice) {
			t.Fatalf("%s\nthen %s\n%v", sent, twice, err)
		}
	})
}
