package inert

import "testing"

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\tand\n": "plain\tand\n", "\x1b[31m\r\x00\a": "␛[31m␍␀␇", "\x7f": "␡", "\u009b31m": "\ufffd31m",
		"a\u202eb\u2066c": "a\ufffdb\ufffdc", "日本é": "日本é", "\xff": "\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}
