package filter

import (
	"bytes"
	"strings"
	"testing"
)

var outputs = map[string]string{
	"plain":    "the quick brown fox jumps over the lazy dog 0123456789 and goes on to the end of it\r\n",
	"yes":      "y\r\n",
	"colours":  "\x1b[32mok\x1b[0m  \x1b[1;34mcortexfs/libctx\x1b[0m\t\x1b[38;5;244m0.012s\x1b[m coverage\r\n",
	"utf8":     "Zwölf Boxkämpfer jagen Viktor 日本語のテキスト über den Sylter Deich\r\n",
	"curses":   "\x1b[12;40H\x1b(B\x1b[m\x1b[K\x1b[38;2;10;20;30mcell\x1b[39m\x1b[13;1H│\x1b[7m x \x1b[27m",
	"titles":   "\x1b]0;user@host: ~/src\a\x1b]8;;http://example.org/\x1b\\link\x1b]8;;\x1b\\ some text\r\n",
	"sixel":    "\x1bPq" + strings.Repeat("#0!40~#1!30@$-", 2000) + "\x1b\\",
	"question": "text\x1b[6n",
}

func BenchmarkFilter(b *testing.B) {
	for name, line := range outputs {
		b.Run(name, func(b *testing.B) {
			in := []byte(strings.Repeat(line, 1+(1<<20)/len(line)))
			dst := make([]byte, 0, len(in))
			var f Filter
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				for p := in; len(p) > 0; {
					n := min(len(p), 8<<10)
					dst = f.Append(dst[:0], p[:n])
					p = p[n:]
				}
			}
		})
	}
}

// What a program writes all the time costs no memory.
func TestAllocations(t *testing.T) {
	for name, line := range outputs {
		in := bytes.Repeat([]byte(line), 20)
		dst := make([]byte, 0, len(in))
		var f Filter
		f.Append(dst, in)
		if n := testing.AllocsPerRun(20, func() { dst = f.Append(dst[:0], in) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
