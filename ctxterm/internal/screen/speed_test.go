package screen

import (
	"bytes"
	"fmt"
	"testing"

	"cortexfs.org/libctx/termwire"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// floods is what programs write too much of.
func floods() map[string][]byte {
	var plain, coloured, runes, addressed bytes.Buffer
	for i := range 400 {
		fmt.Fprintf(&plain, "%06d the quick brown fox jumps over the lazy dog, and then once more\r\n", i)
		fmt.Fprintf(&coloured, "\x1b[1;32m%06d\x1b[0m \x1b[38;5;%dmthe quick brown fox\x1b[m jumps \x1b[4;31mover\x1b[0m the lazy dog\r\n", i, i%256)
		fmt.Fprintf(&runes, "%06d žluťoučký kůň, 漢字かな交じり文, ─│┌┐ – « naïve »\r\n", i)
		fmt.Fprintf(&addressed, "\x1b[%d;%dH\x1b[48;5;%dm%04d\x1b[K", 1+i*7%24, 1+i*13%80, i%256, i)
	}
	return map[string][]byte{
		"y lines":          bytes.Repeat([]byte("y\r\n"), 8000),
		"plain lines":      plain.Bytes(),
		"coloured lines":   coloured.Bytes(),
		"UTF-8 lines":      runes.Bytes(),
		"cursor addressed": addressed.Bytes(),
	}
}

// BenchmarkWrite compares this emulator, with 10,000 lines of scrollback, with
// another one and with what its parser alone takes. docs/performance.md holds
// the table.
func BenchmarkWrite(b *testing.B) {
	for name, flood := range floods() {
		b.Run(name+"/screen", func(b *testing.B) {
			s := New(termwire.DefaultSize, Options{Scrollback: 10_000})
			b.SetBytes(int64(len(flood)))
			b.ReportAllocs()
			for b.Loop() {
				s.Write(flood)
			}
		})
		b.Run(name+"/vt", func(b *testing.B) {
			e := vt.NewEmulator(80, 24)
			b.SetBytes(int64(len(flood)))
			for b.Loop() {
				e.Write(flood)
			}
		})
		b.Run(name+"/parser", func(b *testing.B) {
			p := ansi.NewParser()
			p.SetHandler(ansi.Handler{Print: func(rune) {}, Execute: func(byte) {}, HandleCsi: func(ansi.Cmd, ansi.Params) {}})
			b.SetBytes(int64(len(flood)))
			for b.Loop() {
				for _, c := range flood {
					p.Advance(c)
				}
			}
		})
	}
}

func BenchmarkRedraw(b *testing.B) {
	s := New(termwire.Size{Cols: 200, Rows: 50}, Options{})
	for _, flood := range floods() {
		s.Write(flood)
	}
	for b.Loop() {
		s.Redraw(termwire.Size{})
	}
}
