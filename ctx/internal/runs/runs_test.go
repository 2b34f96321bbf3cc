package runs

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
)

func TestServes(t *testing.T) {
	for line, want := range map[string]bool{
		"/usr/bin/ctxd\x00--root\x00/t\x00agent\x00coder\x00": true,
		"ctxd\x00agent\x00--idle\x001m\x00coder\x00":          true,
		"ctxd\x00agent\x00coder2\x00":                         false,
		"ctxd\x00serve\x00":                                   false,
		"vim\x00agent\x00coder\x00":                           false,
		"ctxd\x00serve\x00coder\x00":                          false,
		"":                                                    false,
		"\x00":                                                false,
	} {
		if got := serves([]byte(line), "coder"); got != want {
			t.Errorf("serves(%q) = %v", line, got)
		}
	}
}

func TestArrange(t *testing.T) {
	list := []Listing{{Agent: "b", Parent: "a"}, {Agent: "a"}, {Agent: "c", Parent: "b"}, {Agent: "x", Parent: "y"}, {Agent: "y", Parent: "x"}, {Agent: "z", Parent: "gone"}}
	show := func(all []placed) string {
		var b strings.Builder
		for _, p := range all {
			b.WriteString(p.indent + string(p.Agent) + "\n")
		}
		return b.String()
	}
	if got := show(arrange(list, false)); got != "b\na\nc\nx\ny\nz\n" {
		t.Errorf("flat:\n%s", got)
	}
	if got := show(arrange(list, true)); got != "a\n  b\n    c\nz\nx\n  y\n" {
		t.Errorf("tree:\n%s", got)
	}
}

func TestNumber(t *testing.T) {
	run := libctx.NewRun()
	if number("") != 0 || number(libctx.MakeEvent(run, 12)) != 12 {
		t.Error(number(libctx.MakeEvent(run, 12)))
	}
}

// However a message was cut into pieces, and whichever of them were lost, its
// text is shown whole and only once in a row.
func TestSpeech(t *testing.T) {
	const text = "Grün: 日本 🙂\nsecond line"
	for range 500 {
		var out bytes.Buffer
		s := &speech{out: &output.Printer{Out: &out}}
		lost := rand.IntN(4) == 0
		rest := []rune(text)
		for len(rest) > 0 && rand.IntN(8) > 0 {
			n := 1 + rand.IntN(len(rest))
			s.piece(string(rest[:n]))
			if lost {
				n = min(n+1, len(rest))
			}
			rest = rest[n:]
		}
		s.message(text, false, 0)
		s.message("next", false, 0)
		s.newline()
		got := out.String()
		if !strings.HasSuffix(got, text+"\nnext\n") {
			t.Fatalf("shown %q", got)
		}
		if !lost && got != text+"\nnext\n" {
			t.Fatalf("nothing was lost and yet %q was shown", got)
		}
	}
}

func TestClippedMessage(t *testing.T) {
	var out bytes.Buffer
	s := &speech{out: &output.Printer{Out: &out}}
	s.piece("all of it")
	if s.message("all…it", true, len("all of it")) {
		t.Error("a message that was streamed whole counts as missing")
	}
	if !s.message("head…tail", true, 100) {
		t.Error("a clipped message counts as shown")
	}
	s.newline()
	if out.String() != "all of it\nhead…tail\n" {
		t.Errorf("%q", out.String())
	}
}
