package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"cortexfs.org/libctx/termwire"
)

// What is left out of a flood can be seen nowhere.
func TestFlood(t *testing.T) {
	parts := []string{
		"plain words ", "ünïcode ─│ 漢字 ", "\x1b[1;31mred\x1b[m ", "\x1b[44m", "\x1b[0;7m", "\x1b[0m", "\t", "\b", "©", "e\u0301",
		"a text that is longer than the screen is wide and goes on in the next row, and then still further on, to its end",
	}
	odd := []string{"\x1b[5;10H", "\x1b[2J", "\x1b[2;5r", "\x1b[4h", "\x1b(0", "\x0e", "\u009b1m", "\x1b[?1049h", "\x1b[?7l", "\n", "\x1b[38;2;1;", "\xe2\x94"}
	left := 0
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		one := New(termwire.Size{Cols: 40, Rows: 6}, Options{Scrollback: 20})
		two := New(termwire.Size{Cols: 40, Rows: 6}, Options{Scrollback: 20})
		for range 3 {
			var b bytes.Buffer
			if rnd.IntN(2) == 0 {
				b.WriteString(odd[rnd.IntN(len(odd))])
			}
			for range 20 + rnd.IntN(100) {
				for range rnd.IntN(4) {
					b.WriteString(parts[rnd.IntN(len(parts))])
				}
				if rnd.IntN(400) == 0 {
					b.WriteString(odd[rnd.IntN(len(odd))])
				}
				b.WriteString("\r\n")
			}
			if rnd.IntN(2) == 0 {
				b.WriteString("$ ")
			}
			if one.flows() && lastLines(b.Bytes()[:plain(b.Bytes())], 32) > 0 {
				left++
			}
			one.Write(b.Bytes())
			two.Flood(b.Bytes())
			if got, want := two.Redraw(termwire.Size{}), one.Redraw(termwire.Size{}); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %q\nshows %q\nnot   %q", seed, &b, two.Text(), one.Text())
			}
			if got, want := two.Scrollback(20), one.Scrollback(20); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %q\nkeeps %q\nnot   %q", seed, &b, got, want)
			}
		}
	}
	if left < 100 {
		t.Errorf("something was left out %d times only", left)
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\r\n\tb\b\a": "", "\x1b[1mx\x1b[31m": "\x1b[1m\x1b[31m", "\x1b[1m\x1b[m\x1b[3m": "\x1b[m\x1b[3m", "\x1b[1m\x1b[0mé©": "\x1b[0m",
	} {
		if style, n := pens([]byte(text)), plain([]byte(text)); string(style) != want || n != len(text) {
			t.Errorf("%q: %q, %d", text, style, n)
		}
	}
	for _, text := range []string{"\x1b", "\x1b[", "\x1b[1", "\x1b[K", "\x1b[>4m", "\x1b]2;x\a", "\x7f", "\x05", "\x0e", "\u0085", "\xc2", "\x0b"} {
		for n := range 20 {
			before := "\x1b[1m" + "12345678901234567890"[:n]
			if n := plain([]byte(before + text)); n != len(before) {
				t.Errorf("%q: %d", before+text, n)
			}
		}
	}
}

func BenchmarkFlood(b *testing.B) {
	for name, flood := range floods() {
		b.Run(fmt.Sprint(name), func(b *testing.B) {
			s := New(termwire.DefaultSize, Options{Scrollback: 10_000})
			flood := bytes.Repeat(flood, (3<<20)/len(flood))
			b.SetBytes(int64(len(flood)))
			for range b.N {
				s.Flood(flood)
			}
		})
	}
}
