package attach

import "testing"

// TestColours: wherever a sequence is cut, one that sets a colour is seen, and
// nothing else is one.
func TestColours(t *testing.T) {
	for text, want := range map[string]bool{
		"a\x1b]4;1;#ffffff\ab": true, "\x1b]11;#000\x1b\\": true, "\x1b]104\a": true, "\u009d10;red\a": true, "\x1b]0012;red\a": true,
		"plain": false, "\x1b]0;title 4;\a": false, "\x1b]2;11;\a": false, "\x1b]8;;x\a": false, "\x1b[4;1m": false, "\x1b]52;c;\a": false, "]4;": false,
	} {
		for cut := range len(text) {
			var c colours
			for _, b := range []byte(text[:cut]) {
				c.see([]byte{b})
			}
			c.see([]byte(text[cut:]))
			if c.set != want || (c.back() != "") != want || c.back() != "" {
				t.Errorf("%q cut at %d: %v", text, cut, c.set)
			}
		}
	}
}
