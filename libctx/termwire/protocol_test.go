package termwire

import (
	"bytes"
	"encoding/base64"
	"os"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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
	if len(found) < 5 {
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
		sent, err := MarshalRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(string(sent), "\n"); got != line {
			t.Errorf("sent as %s\nnot     %s", got, line)
		}
	}
	for op := range requests {
		if !seen[op] {
			t.Errorf("PROTOCOL.md has no example of %s", op)
		}
	}
}

func TestProtocolRefusals(t *testing.T) {
	long := `{"op":"input","data_b64":"` + base64.StdEncoding.EncodeToString(make([]byte, libctx.MaxTermInput+1)) + `"}`
	for _, line := range append(vectors(t, "✗"), long, `{"op":"watch","term":"`+strings.Repeat("x", 65)+`"}`) {
		if r, err := DecodeRequest([]byte(line)); r != nil || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%.80s: got %v, %v", line, r, err)
		}
	}
}

// What would be refused is not sent either.
func TestMarshalRefuses(t *testing.T) {
	for _, r := range []Request{
		&Attach{}, &Watch{Size: Size{Cols: 80}}, &Input{}, &Output{Data: make([]byte, libctx.MaxTermInput+1)},
		&Resize{Size{1001, 1}}, &Signal{"STOP"}, &Watch{Scrollback: -1},
	} {
		if line, err := MarshalRequest(r); line != nil || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%#v: %s, %v", r, line, err)
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
		seen[f.Kind()] = true
		sent, err := MarshalFrame(f)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSuffix(string(sent), "\n"); got != line {
			t.Errorf("sent as %s\nnot     %s", got, line)
		}
	}
	for kind := range frames {
		if !seen[kind] {
			t.Errorf("PROTOCOL.md has no example of %s", kind)
		}
	}
}

func TestUnknownFrame(t *testing.T) {
	line := []byte(`{"type":"weather","text":"rain"}`)
	f, err := DecodeFrame(line)
	if o, ok := f.(*Other); err != nil || !ok || o.Kind() != "weather" || !bytes.Equal(o.Raw, line) {
		t.Fatalf("got %#v, %v", f, err)
	}
	for _, bad := range []string{
		`{"type":"resized","cols":0,"rows":1}`, `{"type":"exit","code":256}`, `{"type":"exit","code":-1}`, `{}`, `[]`,
		`{"type":"output","seq":1}`, `{"type":"screen","cols":1,"rows":1,"data_b64":null}`, `{"type":"output","seq":-1,"data_b64":""}`, `{"type":"output","seq":1,"data_b64":"x"}`,
	} {
		if f, err := DecodeFrame([]byte(bad)); f != nil || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v, %v", bad, f, err)
		}
	}
}

func TestFrameLimit(t *testing.T) {
	most := 1 << 19
	if _, err := MarshalFrame(&Bytes{Seq: 1, Data: make([]byte, most)}); err != nil {
		t.Error(err)
	}
	for _, f := range []Frame{&Bytes{Data: make([]byte, 1<<20)}, &Screen{Size: DefaultSize, Data: make([]byte, 1<<20)}} {
		if line, err := MarshalFrame(f); line != nil || !errdefs.Is(err, errdefs.TooBig) {
			t.Errorf("%s: %d bytes, %v", f.Kind(), len(line), err)
		}
	}
}

// The way without reflection writes and reads what the other one does.
func TestOutputPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &Bytes{Seq: rapid.Uint64().Draw(t, "seq"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		fast := AppendOutput([]byte("before"), want.Seq, want.Data)[len("before"):]
		slow, err := marshal(`{"type":"output"`, want)
		if err != nil || !bytes.Equal(fast, slow) {
			t.Fatalf("%s\nnot %s, %v", fast, slow, err)
		}
		if got := decodeOutput(fast); got == nil || got.Seq != want.Seq || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s: %v", fast, got)
		}
		spaced := bytes.Replace(fast, []byte(`,"`), []byte(`, "`), 1)
		f, err := DecodeFrame(spaced)
		if got, ok := f.(*Bytes); err != nil || !ok || got.Seq != want.Seq || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s: %v, %v", spaced, f, err)
		}
	})
}

func FuzzDecodeRequest(f *testing.F) {
	for _, mark := range []string{"→", "✗"} {
		for _, line := range vectors(f, mark) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := DecodeRequest(line)
		if err != nil {
			if r != nil || !errdefs.Is(err, errdefs.Invalid) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q with %v", err, r)
			}
			return
		}
		sent, err := MarshalRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeRequest(sent)
		if d := cmp.Diff(r, again); d != "" || err != nil {
			t.Fatal(d, err)
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
		sent, err := MarshalFrame(frame)
		if err != nil {
			if !errdefs.Is(err, errdefs.TooBig) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeFrame(sent)
		if d := cmp.Diff(frame, again); d != "" || err != nil {
			t.Fatal(d, err)
		}
	})
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{"80x24": {80, 24}, "1x1": {1, 1}, "1000x1000": {1000, 1000}} {
		if got, err := ParseSize(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "80", "80x", "x24", "0x24", "80x0", "80x1001", "+80x24", "080x24", "80x24x1", "80X24", " 80x24", "80x-1", "99999999999999999999x1"} {
		if got, err := ParseSize(text); got != (Size{}) || !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("80x24")
	f.Add("1000x1")
	f.Add("080x24")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSize(text)
		if err != nil {
			return
		}
		if s.String() != text || s.Valid() != nil {
			t.Fatalf("%q became %v", text, s)
		}
	})
}

// Everything in the sequence is a complete control, so that no terminal shows
// a byte of it.
func TestResetSequence(t *testing.T) {
	rest := ResetSequence
	for rest != "" {
		n := 0
		switch {
		case rest[0] == 0x0f:
			n = 1
		case strings.HasPrefix(rest, "\x1b["):
			n = 3 + strings.IndexFunc(rest[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
		case strings.HasPrefix(rest, "\x1b]"):
			n = 2 + strings.Index(rest, "\x1b\\")
		case strings.HasPrefix(rest, "\x1b"):
			n = 2
			if strings.ContainsRune("()*+", rune(rest[1])) {
				n = 3
			}
		}
		if n < 1 {
			t.Fatalf("%s is no control", strconv.Quote(rest))
		}
		rest = rest[n:]
	}
}
