package render

import (
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

func TestTable(t *testing.T) {
	head := []string{"NAME", "SIZE"}
	rows := [][]string{{"日本", "1"}, {"a\tb\x1b[2J", ""}, {"long name", "333"}}
	want := "NAME         SIZE\n" + "日本         1\n" + `a\tb\x1b[2J  -` + "\nlong name    333\n"
	if got := Table(head, rows, true, nil); got != want {
		t.Errorf("aligned:\n%s\nwant:\n%s", got, want)
	}
	if got, want := Table(head, rows, false, nil), "日本\t1\n"+`a\tb\x1b[2J`+"\t\nlong name\t333\n"; got != want {
		t.Errorf("piped:\n%q\nwant:\n%q", got, want)
	}
	bold := Table(head, rows, true, func(s string) string { return "<" + s + ">" })
	if !strings.HasPrefix(bold, "<NAME         SIZE>\n") {
		t.Errorf("bold: %q", bold)
	}
	if got := Table(nil, nil, true, nil); got != "" {
		t.Errorf("empty: %q", got)
	}
}

func TestUnits(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3174: "3.1 KiB", 1<<20 - 1: "1.0 MiB", 1 << 40: "1.0 TiB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0 ms", 4 * time.Millisecond: "4 ms", 1590 * time.Millisecond: "1.5 s",
		59999 * time.Millisecond: "59.9 s", 125 * time.Second: "2 min 5 s", 90 * time.Minute: "1 h 30 min"} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestMoney(t *testing.T) {
	for pico, want := range map[int64]string{
		0: "$0", 1: "<$0.0001", 99_999_999: "<$0.0001", 100_000_000: "$0.0001", 149_999_999: "$0.0001", 150_000_000: "$0.0002",
		999_950_000_000: "$1.0000", 1_234_500_000_000: "$1.2345", 1<<63 - 1: "$9223372.0369", -1: "unknown",
	} {
		if got := Dollars(pico); got != want {
			t.Errorf("Dollars(%d) = %q, want %q", pico, got, want)
		}
	}
	if Known("5", true, true)+Known("5", true, false)+Known("5", false, false) != "5at least 5unknown" {
		t.Error(Known("5", true, true), Known("5", true, false), Known("5", false, false))
	}
}

func TestContext(t *testing.T) {
	for want, f := range map[string]wire.Context{
		"the model is shown the whole conversation":                                                                 {},
		"for want of room the model is not shown the oldest 1 message":                                              {Dropped: 1},
		"for want of room the model sees 2 messages shortened":                                                      {Clipped: 2},
		"for want of room the model is not shown the beginning of the conversation":                                 {Older: true},
		"for want of room the model is not shown 3 messages and all that came before, and sees 1 message shortened": {Older: true, Dropped: 3, Clipped: 1},
	} {
		if got := Context(&f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHead(t *testing.T) {
	for _, c := range [][2]string{
		{"", ""}, {"a\n", "a\n"}, {"a\nb\nc", "a\nb\nc"}, {"0123456789", "0123456789"},
		{"a\nb\nc\nd\n", "a\nb\nc\n[8 B in 4 lines; more]"},
		{"0123456789x", "012345678…\n[11 B in 1 line; more]"},
		{"\n\n\n\n", "\n\n\n\n"},
	} {
		if got := Head(c[0], 3, 10, "more"); got != c[1] {
			t.Errorf("Head(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{"args":["fs.read","a b"]}`:        "fs.read a b",
		`{"path":"README.md"}`:              "README.md",
		`{"path":"README.md","limit":3}`:    "README.md",
		`{}`:                                "",
		`{"old":"a","new":"b"}`:             `{"old":"a","new":"b"}`,
		`{"cmd":"rm \u001b[2J\nx"}`:         `rm \x1b[2J\nx`,
		`{"args":[1]}`:                      `{"args":[1]}`,
		`{"cmd":"0123456789012345678901x"}`: "0123456789012345678…",
		`not json`:                          "not json",
	} {
		if got := Arguments(jsontext.Value(in), 20); got != want && len(want) <= 20 || len(want) > 22 && !strings.HasSuffix(got, "…") {
			t.Errorf("Arguments(%s) = %q, want %q", in, got, want)
		}
	}
}
