package capture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSmallOutputIsExact(t *testing.T) {
	b := New(30)
	for range 3 {
		fmt.Fprint(b, "0123456789")
	}
	if b.Truncated() || b.Text() != "012345678901234567890123456789" {
		t.Errorf("%v %q", b.Truncated(), b.Text())
	}
}

func TestHeadAndTail(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		max := rapid.IntRange(3, 300).Draw(t, "max")
		chunks := rapid.SliceOf(rapid.SliceOfN(rapid.ByteRange('a', 'z'), 0, 500)).Draw(t, "chunks")
		b := New(max)
		var all []byte
		for _, c := range chunks {
			if n, err := b.Write(c); n != len(c) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, c...)
		}
		got := b.Text()
		if len(all) <= max {
			if got != string(all) || b.Truncated() {
				t.Fatalf("%d bytes of %d: %q", len(all), max, got)
			}
			return
		}
		head, tail := max*2/3, max-max*2/3
		want := fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", all[:head], len(all)-max, all[len(all)-tail:])
		if got != want || !b.Truncated() {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestCutCharactersBecomeValid(t *testing.T) {
	b := New(10)
	b.Write(bytes.Repeat([]byte("é"), 100))
	if !utf8.ValidString(b.Text()) || !strings.Contains(b.Text(), "left out") {
		t.Errorf("%q", b.Text())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	b := New(1 << 10)
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range 64 {
		b.Write(chunk)
	}
	if cap(b.head)+cap(b.tail) > 4<<10 {
		t.Errorf("holds %d bytes", cap(b.head)+cap(b.tail))
	}
}
