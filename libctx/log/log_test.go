package log

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json"
)

// line decodes the only line of a log.
func line(t *testing.T, b []byte) map[string]any {
	t.Helper()
	if bytes.Count(b, []byte("\n")) != 1 || !bytes.HasSuffix(b, []byte("\n")) {
		t.Fatalf("not one line: %q", b)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return m
}

func TestLine(t *testing.T) {
	var out bytes.Buffer
	l, err := New(&out, "info")
	if err != nil {
		t.Fatal(err)
	}
	l.Debug("not shown")
	var nothing *errdefs.Error
	l.With("agent", libctx.Agent("coder")).With("session", "default").Warn("slow\ntool",
		"run", libctx.Run("01J"), "n", -3, "big", uint64(math.MaxUint64), "ok", true, "took", 1500*time.Millisecond,
		"err", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "bytes", []byte{0xff, 'a', 0}, "nil", nil, "typed", error(nothing), "odd")
	m := line(t, out.Bytes())
	for key, want := range map[string]any{
		"level": "warn", "msg": "slow\ntool", "agent": "coder", "session": "default", "run": "01J",
		"n": -3.0, "ok": true, "took": "1.5s", "err": "read: unexpected EOF", "bytes": "\ufffda\x00", "nil": "", "extra": "odd",
	} {
		if m[key] != want {
			t.Errorf("%s: %#v, want %#v", key, m[key], want)
		}
	}
	if !strings.Contains(out.String(), `"big":18446744073709551615`) {
		t.Error("a large number was rounded")
	}
	ts, err := time.Parse("2006-01-02T15:04:05.000Z", m["ts"].(string))
	if err != nil || time.Since(ts).Abs() > time.Hour {
		t.Errorf("ts: %v, %v", m["ts"], err)
	}
}

func TestLongTextsAreClipped(t *testing.T) {
	var out bytes.Buffer
	l, err := New(&out, "debug")
	if err != nil {
		t.Fatal(err)
	}
	l.Debug(strings.Repeat("ü", 100_000), "text", strings.Repeat("x", 1<<20), "err", errors.New(strings.Repeat("y", 1<<20)))
	line(t, out.Bytes())
	if out.Len() > 4*libctx.MaxLogText {
		t.Errorf("a line of %d bytes", out.Len())
	}
}

func TestLevels(t *testing.T) {
	write := []func(*Logger, string, ...any){(*Logger).Debug, (*Logger).Info, (*Logger).Warn, (*Logger).Error}
	for i, level := range []string{"debug", "info", "warn", "error"} {
		var out bytes.Buffer
		l, err := New(&out, level)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range write {
			w(l, "x")
		}
		if n := strings.Count(out.String(), "\n"); n != 4-i {
			t.Errorf("%s: %d lines", level, n)
		}
	}
	if _, err := New(io.Discard, "loud"); errdefs.KindOf(err) != errdefs.Invalid {
		t.Error(err)
	}
	Discard().With("a", 1).Error("x") // must not fail
}

func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer // zapcore.Lock guards it
	l, err := New(&out, "info")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 100 {
				l.With("who", i).Info("x", "text", strings.Repeat("z", 500))
			}
		})
	}
	wg.Wait()
	lines := bytes.SplitAfter(out.Bytes(), []byte("\n"))
	if len(lines) != 801 {
		t.Fatalf("%d lines", len(lines)-1)
	}
	for _, b := range lines[:800] {
		line(t, b)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAFailedWriteIsDropped(t *testing.T) {
	l, err := New(broken{}, "info")
	if err != nil {
		t.Fatal(err)
	}
	l.Error("x", "k", "v")
}
