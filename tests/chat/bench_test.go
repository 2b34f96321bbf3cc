package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/screen"
)

// BenchmarkProgress is the time from Enter to the first sign of progress on the
// screen.
func BenchmarkProgress(b *testing.B) {
	w := modelled(b, "debug/echo")
	s := start(w, 80, 24)
	s.Type("warm" + enter)
	s.Await("the echo", func(text string) bool { return strings.HasSuffix(text, "warm\n\n"+prompt) })
	for i := 0; b.Loop(); i++ {
		text := fmt.Sprintf("message %d", i)
		b.StopTimer()
		s.Type(text)
		s.Last(prompt + " " + text)
		before := len(s.Raw())
		b.StartTimer()
		s.Type(enter)
		s.WroteAfter(before, " s · ")
		b.StopTimer()
		s.Await("the echo", func(all string) bool { return strings.HasSuffix(all, text+"\n\n"+prompt) })
		b.StartTimer()
	}
	leave(b, s)
}

// BenchmarkKeystroke is the time from a key to the screen, in a chat that is idle
// and in one to which an answer of 100 KB streams.
func BenchmarkKeystroke(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		s := start(modelled(b, "debug/echo"), 80, 24)
		keystrokes(b, s)
		s.Type(ctrlC)
		over(b, s, 0)
	})
	b.Run("streaming", func(b *testing.B) {
		lines := []string{`{"block":"stream","repeat":true}`}
		for range 2000 {
			lines = append(lines, `{"type":"delta","text":"`+strings.Repeat("0123456789", 5)+`\n"}`, `{"delay_ms":10}`)
		}
		lines = append(lines, `{"type":"message","content":[{"type":"text","text":"done"}],"stop":"end"}`)
		s := start(scripted(b, lines), 80, 24)
		s.Type("go" + enter)
		s.See("writing")
		keystrokes(b, s)
		s.Type(ctrlC)
		s.See("cancelled")
		s.Type(ctrlC)
		over(b, s, 0)
	})
}

// keystrokes types and waits for what was typed to be drawn; the longest time is
// reported beside the mean.
func keystrokes(b *testing.B, s *screen.Screen) {
	var slowest time.Duration
	line := ""
	for i := 0; b.Loop(); i++ {
		if len(line) == 40 {
			b.StopTimer()
			s.Type("\x15")
			s.See(prompt)
			line = ""
			b.StartTimer()
		}
		line += string(rune('a' + i%26))
		begin := time.Now()
		s.Type(line[len(line)-1:])
		s.See(prompt + " " + line)
		slowest = max(slowest, time.Since(begin))
	}
	b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
}
