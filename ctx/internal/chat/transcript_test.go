package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// play shows what blocks come of frames.
func play(t *testing.T, s *transcript, lines ...string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		f, err := wire.DecodeFrame([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range s.frame(f) {
			kind := "note"
			if block.answer {
				kind = "answer"
			} else if block.loud {
				kind = "loud"
			}
			fmt.Fprintf(&b, "%s: %s\n", kind, block.text)
		}
	}
	return b.String()
}

const run = `"run":"01KB9QZ3M8T5V2N7X4C6D1E0FG"`

func TestTranscript(t *testing.T) {
	var s transcript
	s.begin()
	got := play(t, &s,
		`{"type":"start",`+run+`,"client_id":"a"}`,
		`{"type":"delta",`+run+`,"text":"Hel"}`,
		`{"type":"message",`+run+`,"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"Hello"}]}`,
		`{"type":"tool_call",`+run+`,"call":"c1","name":"tsh","arguments":{"args":["fs.read","a\u001bb"]}}`,
		`{"type":"tool_call",`+run+`,"call":"c2","name":"shell.exec","arguments":{"cmd":"make"}}`,
		`{"type":"tool_policy",`+run+`,"call":"c2","allowed":false,"code":"perm","reason":"no"}`,
		`{"type":"tool_result",`+run+`,"call":"c2","status":"error","content":"not permitted","truncated":false,"duration_ms":0}`,
		`{"type":"tool_result",`+run+`,"call":"c1","status":"error","content":"xyz","truncated":false,"bytes":3000,"exit_code":2,"duration_ms":4}`,
		`{"type":"usage",`+run+`,"input_tokens":10,"output_tokens":2,"cached_tokens":30}`,
		`{"type":"message",`+run+`,"role":"assistant","content":[]}`,
		`{"type":"error",`+run+`,"code":"EIO","message":"well","recoverable":true}`,
		`{"type":"done",`+run+`,"status":"ok"}`,
	)
	want := `answer: Hello
loud: tool 2 shell.exec make … refused: no (perm)
note: tool 1 fs.read a\x1bb … failed (exit 2) 2.9 KiB 4 ms
note: agent: well
`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.model = "lab/big"
	if got := s.progress(3*time.Second, 80); got != "3 s · thinking · 42 tokens · lab/big" {
		t.Error(got)
	}
	if got := s.progress(90*time.Second, 20); got != "1 min 30 s · thinki…" {
		t.Error(got)
	}
	if r, ok := s.shelf.get(1); !ok || r.text != "xyz" || !r.short {
		t.Errorf("%+v", r)
	}
	if _, ok := s.shelf.get(2); ok {
		t.Error("a refused call has a result")
	}
}

// TestTranscriptOfRepeatedCalls: calls that are made again, because the host of
// their own run died, have names and numbers as all others.
func TestTranscriptOfRepeatedCalls(t *testing.T) {
	var s transcript
	s.begin()
	got := play(t, &s,
		`{"type":"start",`+run+`,"client_id":"a"}`,
		`{"type":"tool_policy",`+run+`,"call":"c1","allowed":true,"via":"tsh","name":"fs.read"}`,
		`{"type":"tool_result",`+run+`,"call":"c1","name":"tsh","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		`{"type":"tool_policy",`+run+`,"call":"c2","allowed":true}`,
		`{"type":"tool_result",`+run+`,"call":"c2","name":"fs.list","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		`{"type":"tool_result",`+run+`,"call":"c3","name":"tsh","status":"error","content":"not executed","truncated":false,"duration_ms":0}`,
		`{"type":"done",`+run+`,"status":"ok"}`,
	)
	want := "note: tool 1 fs.read … 1 B 4 ms\nnote: tool 2 fs.list … 1 B 4 ms\nnote: tool 3 tsh … failed 12 B 0 ms\n"
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestTranscriptOfBadEnds(t *testing.T) {
	var s transcript
	s.begin()
	got := play(t, &s, `{"type":"delta",`+run+`,"text":"I beg"}`, `{"type":"error",`+run+`,"code":"EREMOTEIO","message":"gone"}`, `{"type":"done",`+run+`,"status":"error"}`)
	if got != "answer: I beg\nloud: the run failed: gone\n" {
		t.Error(got)
	}
	s.begin()
	if got := play(t, &s, `{"type":"done",`+run+`,"status":"cancelled"}`); got != "loud: cancelled\n" {
		t.Error(got)
	}
}

// TestClippedMessage: a frame that carries head and tail only is made whole by
// what was streamed.
func TestClippedMessage(t *testing.T) {
	var s transcript
	for _, streamed := range []string{"all of it", "all of"} {
		s.begin()
		got := play(t, &s, `{"type":"delta",`+run+`,"text":"`+streamed+`"}`,
			`{"type":"message",`+run+`,"role":"assistant","content":[{"type":"text","text":"a…t"}],"truncated":true,"bytes":9}`)
		whole := strings.HasPrefix(got, "answer: all of it\n") && !strings.Contains(got, "shortened")
		if whole != (streamed == "all of it") {
			t.Error(got)
		}
	}
}

func TestShelfIsBounded(t *testing.T) {
	var s shelf
	for i := range 2 * libctx.MaxShelf {
		s.put(shelved{number: i + 1, text: strings.Repeat("x", libctx.MaxShelfBytes/8)})
	}
	if len(s.items) > 8 || s.bytes > libctx.MaxShelfBytes {
		t.Errorf("%d items, %d bytes", len(s.items), s.bytes)
	}
	if r, ok := s.get(0); !ok || r.number != 2*libctx.MaxShelf {
		t.Errorf("%d", r.number)
	}
}
