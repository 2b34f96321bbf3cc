package question

import "testing"

// TestOnlyKeysAnswer: what is part of a paste or of a sequence is no key, wherever the
// pieces are cut.
func TestOnlyKeysAnswer(t *testing.T) {
	for _, c := range []struct {
		chunks []string
		want   string // keys of each chunk
	}{
		{[]string{"y"}, "y|"},
		{[]string{"yes"}, "yes|"},
		{[]string{"\x1by", "\x1bOyn"}, "|n|"},
		{[]string{"\x1b[A", "n"}, "|n|"},
		{[]string{"x\x1b[1;", "5yn"}, "x|n|"},
		{[]string{"\x1b", "n"}, "|n|"},
		{[]string{"\x1b[200~y\x1b[201~", "y"}, "|y|"},
		{[]string{"\x1b[200~", "y", "\r", "\x1b[201~", "n"}, "||||n|"},
		{[]string{"\x1b[20", "0~x", "y", "\x1b[20", "1~", "v"}, "|||||v|"},
		{[]string{"\x1b[200~é\x1b[201\x1b[201~n"}, "n|"},
	} {
		var k keys
		got := ""
		for _, chunk := range c.chunks {
			got += string(k.take([]byte(chunk))) + "|"
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.chunks, got, c.want)
		}
	}
}

// TestYesIsY: of all bytes one letter allows.
func TestYesIsY(t *testing.T) {
	for c := range 256 {
		if got, want := asked(byte(c), true) == Yes, c == 'y' || c == 'Y'; got != want || asked(byte(c), false) == Yes {
			t.Errorf("%q: %v", rune(c), got)
		}
		if k := viewed(byte(c)); k == Yes || k == No {
			t.Errorf("%q answers what is only looked at", rune(c))
		}
	}
	if asked('\r', true) != No || asked('\n', false) != No || asked(0x03, false) != Cancel {
		t.Error("Enter, or Ctrl+C")
	}
}
