package capwire

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
)

// vectors returns the lines of PROTOCOL.md that begin with this mark.
func vectors(t testing.TB, mark string, atLeast int) []string {
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
	if len(found) < atLeast {
		t.Fatalf("PROTOCOL.md holds %d examples marked %s", len(found), mark)
	}
	return found
}

func TestProtocolRequests(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range vectors(t, "→", 3) {
		r, err := Decode([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[r.Op] = true
		sent, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(sent)
		if err != nil || cmp.Diff(r, again) != "" {
			t.Errorf("%s: %v\n%s", sent, err, cmp.Diff(r, again))
		}
	}
	if !seen[Ping] || !seen[Update] {
		t.Errorf("there are examples of %v", seen)
	}
}

func TestProtocolRefusals(t *testing.T) {
	for mark, kind := range map[string]errdefs.Kind{"✗": errdefs.Invalid, "?": errdefs.Unsupported} {
		for _, line := range vectors(t, mark, 2) {
			r, err := Decode([]byte(line))
			if !errdefs.Is(err, kind) || r.Op != "" || r.Content != nil {
				t.Errorf("%s: %+v, %v", line, r, err)
			}
		}
	}
}

// A refusal names the request wherever that can be read, and then only.
func TestIDOfARefusedRequest(t *testing.T) {
	for line, id := range map[string]string{
		`{"op":"ping","request_id":"x"}`:                                "x",
		`{"request_id":"x"}`:                                            "x",
		`{"op":"agent.create","request_id":"x-1","child":"c"}`:          "x-1",
		`{"op":"ping","request_id":"x y"}`:                              "",
		`{"op":"ping","request_id":7}`:                                  "",
		`{"op":"ping","request_id":"x"`:                                 "",
		`{"op":"ping","request_id":"x","request_id":"x"}`:               "",
		`{"op":"ping","request_id":"` + strings.Repeat("x", 129) + `"}`: "",
	} {
		if r, err := Decode([]byte(line)); err == nil || r.ID != id {
			t.Errorf("%s: %q, %v", line, r.ID, err)
		}
	}
}

func TestReplies(t *testing.T) {
	ping := Request{Op: Ping, ID: "hello-1"}
	update := Request{Op: Update, ID: "tool-1"}
	other := Request{Op: Update, ID: "a.B_9-"}
	for _, line := range vectors(t, "←", 5) {
		var done int
		var refused errdefs.Kind
		for _, r := range []Request{ping, update, other} {
			switch err := r.DecodeReply([]byte(line)); {
			case err == nil:
				done++
			case !errdefs.Is(err, errdefs.Protocol):
				refused = errdefs.KindOf(err)
			}
		}
		if (done == 1) == (refused != "") {
			t.Errorf("%s: done for %d requests, refused with %q", line, done, refused)
		}
	}
	for _, line := range []string{"", "{}", `{"type":"pong"}`, `{"type":"pong","request_id":"hello-2"}`, `{"type":"agent.updated","request_id":"hello-1"}`,
		`{"type":"error","request_id":"hello-1"}`, `{"type":"error","request_id":"hello-2","code":"EACCES","message":"x"}`, `{"type":"pong","request_id":"hello-1","code":"EIO"}`,
		`{"type":"pong","request_id":"hello-1","more":1}`} {
		if err := ping.DecodeReply([]byte(line)); !errdefs.Is(err, errdefs.Protocol) {
			t.Errorf("%s: %v", line, err)
		}
	}
	sent, err := Refusal("hello-1", errdefs.New(errdefs.Denied, "no\x1b[2J%s\n", strings.Repeat("x", 10_000))).Encode()
	if err != nil || len(sent) > 2048 {
		t.Errorf("%d bytes, %v", len(sent), err)
	}
	if err := ping.DecodeReply(sent[:len(sent)-1]); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("%s: %v", sent, err)
	}
}

// A text of the size that is allowed fits, unless it is made of escapes.
func TestSizes(t *testing.T) {
	of := func(text string) error {
		_, err := Request{Op: Update, ID: strings.Repeat("x", libctx.MaxCapID), Agent: libctx.Agent(strings.Repeat("a", libctx.MaxAgentName)),
			Session: libctx.Session(strings.Repeat("s", libctx.MaxName)), Run: "01KB9QZ3M8T5V2N7X4C6D1E0FG", Control: "prompt.template.md", Content: &text}.Encode()
		return err
	}
	if err := of(strings.Repeat("text, \"words\"\n", libctx.MaxCapContent/14)); err != nil {
		t.Error(err)
	}
	if err := of(strings.Repeat("\x01", libctx.MaxCapContent)); !errdefs.Is(err, errdefs.TooBig) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, mark := range []string{"→", "✗", "?"} {
		for _, line := range vectors(f, mark, 1) {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := Decode(line)
		if err != nil {
			if !errdefs.Is(err, errdefs.Invalid) && !errdefs.Is(err, errdefs.Unsupported) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			if r != (Request{ID: r.ID}) {
				t.Fatalf("%v with %+v", err, r)
			}
			return
		}
		sent, err := r.Encode()
		if errdefs.Is(err, errdefs.TooBig) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(sent)
		if err != nil || cmp.Diff(r, again) != "" {
			t.Fatalf("%s: %v\n%s", sent, err, cmp.Diff(r, again))
		}
	})
}
