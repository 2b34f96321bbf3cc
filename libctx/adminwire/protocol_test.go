package adminwire

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
	for _, line := range vectors(t, "→", 7) {
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
		if again, err := Decode(sent); err != nil || cmp.Diff(r, again) != "" {
			t.Errorf("%s: %v\n%s", sent, err, cmp.Diff(r, again))
		}
	}
	for _, op := range []string{Ping, New, Set, Remove, Enable} {
		if !seen[op] {
			t.Errorf("PROTOCOL.md shows no %s", op)
		}
	}
}

func TestProtocolRefusals(t *testing.T) {
	for mark, kind := range map[string]errdefs.Kind{"✗": errdefs.Invalid, "?": errdefs.Unsupported} {
		for _, line := range vectors(t, mark, 2) {
			if r, err := Decode([]byte(line)); !errdefs.Is(err, kind) || cmp.Diff(r, Request{}) != "" {
				t.Errorf("%s: %+v, %v", line, r, err)
			}
		}
	}
}

func TestReplies(t *testing.T) {
	for _, line := range vectors(t, "←", 5) {
		answers := 0
		for _, r := range []Request{{Op: Ping}, {Op: New, Agent: "a"}} {
			_, err := r.DecodeReply([]byte(line))
			if !errdefs.Is(err, errdefs.Protocol) {
				answers++
			}
			if strings.Contains(line, Failed) && (!errdefs.Is(err, errdefs.Denied) || errdefs.HintOf(err) == "") {
				t.Errorf("%s: %v", line, err)
			}
		}
		if answers == 0 {
			t.Errorf("%s answers nothing", line)
		}
	}
	for _, line := range []string{"", "{}", `{"type":"error"}`, `{"type":"pong"}`, `{"type":"done","code":"EIO"}`} {
		if _, err := (Request{Op: Set}).DecodeReply([]byte(line)); !errdefs.Is(err, errdefs.Protocol) {
			t.Errorf("%s: %v", line, err)
		}
	}
	sent, err := Refusal(errdefs.New(errdefs.Invalid, "no\xff%s", strings.Repeat("\x1b", 10_000)).WithHint("%s", strings.Repeat("x", 10_000))).Encode()
	if err != nil || len(sent) > 16<<10 {
		t.Errorf("%d bytes, %v", len(sent), err)
	}
	if _, err := (Request{Op: Set}).DecodeReply(sent[:len(sent)-1]); !errdefs.Is(err, errdefs.Invalid) {
		t.Error(err)
	}
}

// A control of the size that is allowed fits, whatever is in it.
func TestSizes(t *testing.T) {
	content := strings.Repeat("\x01", libctx.MaxControlFile)
	if _, err := (Request{Op: Set, Agent: "a", Control: "system.md", Content: &content}).Encode(); err != nil {
		t.Error(err)
	}
	content = strings.Repeat("x", libctx.MaxFrame)
	if _, err := (Request{Op: Set, Agent: "a", Control: "system.md", Content: &content}).Encode(); !errdefs.Is(err, errdefs.TooBig) {
		t.Error(err)
	}
	if _, err := Decode([]byte(`{"op":"agent.new","agent":"a","program":268435457}`)); !errdefs.Is(err, errdefs.TooBig) {
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
			if strings.Contains(err.Error(), "\n") || cmp.Diff(r, Request{}) != "" {
				t.Fatalf("%q with %+v", err, r)
			}
			return
		}
		sent, err := r.Encode()
		if err != nil {
			if errdefs.Is(err, errdefs.TooBig) {
				return
			}
			t.Fatal(err)
		}
		if again, err := Decode(sent); err != nil || cmp.Diff(r, again) != "" {
			t.Fatalf("%s: %v\n%s", sent, err, cmp.Diff(r, again))
		}
	})
}
