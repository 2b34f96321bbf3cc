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

// However reasoning is cut into pieces, its lines are said whole, blank ones not
// at all, and none grows without bound.
func TestThought(t *testing.T) {
	const text = "Grün\n\n  \n日本 🙂\nthe rest"
	for range 200 {
		var said []string
		say := func(line string) { said = append(said, line) }
		var think thought
		for rest := []rune(text); len(rest) > 0; {
			n := 1 + rand.IntN(len(rest))
			think.piece(string(rest[:n]), say)
			rest = rest[n:]
		}
		think.end(say)
		think.end(say)
		if got := strings.Join(said, "|"); got != "reasoning: Grün|reasoning: 日本 🙂|reasoning: the rest" {
			t.Fatalf("said %q", got)
		}
	}
	var said []string
	say := func(line string) { said = append(said, line) }
	var seen thought
	seen.piece("a\nb", say)
	seen.end(say)
	seen.whole("a\nb", say) // it was said
	seen.whole("c\nd", say)
	if got := strings.Join(said, "|"); got != "reasoning: a|reasoning: b|reasoning: c|reasoning: d" {
		t.Errorf("said %q", got)
	}
	var think thought
	lines := 0
	for range 100 {
		think.piece(strings.Repeat("x", 1000), func(line string) {
			if lines++; len(line) > maxThought+2000 {
				t.Errorf("a line of %d bytes", len(line))
			}
		})
	}
	if lines < 30 || think.line.Len() > maxThought+1000 {
		t.Errorf("%d lines, %d bytes are left", lines, think.line.Len())
	}
}
