package screen

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/termwire"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"
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
// another one and with the library's parser alone, in turns and by the time of
// the processor, so that the ratios hold on a busy machine. docs/performance.md
// has the table.
func BenchmarkWrite(b *testing.B) {
	for name, flood := range floods() {
		b.Run(name, func(b *testing.B) {
			s := New(termwire.DefaultSize, Options{Scrollback: libctx.MaxTermScrollback})
			e := vt.NewEmulator(s.cols, s.rows)
			p := ansi.NewParser()
			p.SetHandler(ansi.Handler{Print: func(rune) {}, Execute: func(byte) {}, HandleCsi: func(ansi.Cmd, ansi.Params) {}})
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var ours, theirs, parser time.Duration
			for b.Loop() {
				ours += spent(func() { s.Write(flood) })
				theirs += spent(func() { e.Write(flood) })
				parser += spent(func() { p.Parse(flood) })
			}
			rate := func(d time.Duration) float64 { return float64(len(flood)) * float64(b.N) / d.Seconds() / 1e6 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate(ours), "MB/s")
			b.ReportMetric(rate(theirs), "vt-MB/s")
			b.ReportMetric(rate(parser), "parser-MB/s")
		})
	}
}

// spent is the time of the processor that f takes of this thread.
func spent(f func()) time.Duration {
	var from, to unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &from)
	f()
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &to)
	return time.Duration(to.Nano() - from.Nano())
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
