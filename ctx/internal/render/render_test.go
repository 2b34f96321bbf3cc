package render

import (
	"strings"
	"testing"
	"time"

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
