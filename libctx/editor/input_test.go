package editor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
)

func TestPlain(t *testing.T) {
	in := "one\ntwo \\\nlines\r\n\n" + "bad \xff\n" + strings.Repeat("x", libctx.MaxFrame+1) + "\nlast \\"
	var out strings.Builder
	p := NewPlain(strings.NewReader(in), &out, "> ")
	defer p.Close()
	var got []string
	for {
		p.Next()
		l := <-p.Lines()
		if l.Err == io.EOF {
			break
		}
		if l.Err != nil {
			got = append(got, "error")
			if len(got) == 5 {
				break
			}
			continue
		}
		got = append(got, l.Text)
	}
	if want := `["one" "two \nlines" "" "error" "error"]`; fmt.Sprintf("%q", got) != want {
		t.Errorf("%q\nwant %s", got, want)
	}
	if out.String() != strings.Repeat("> ", 5) {
		t.Errorf("%q", out.String())
	}
}

func TestCandidates(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"alpha", "al\x1bice", "all of it", "al#pha", ".hidden", "b/inner"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	words := func(before, word string) ([]string, bool) {
		if before != "" {
			return nil, before != "only "
		}
		return []string{"/help", "/history", "/quit"}, word != "/q"
	}
	e := &Editor{opts: Options{Dir: dir, Words: words, Special: "'#"}}
	for before, want := range map[string]string{
		"only ":             "[]",
		"/none":             "[]",
		"/h":                "[/help /history]",
		"see /none":         "[]",
		"see al":            "[alpha]",
		"see ":              "[alpha b/]",
		"see .":             "[.hidden]",
		"see b/":            "[b/inner]",
		"see " + dir + "/a": "[" + dir + "/alpha]",
		"see none/":         "[]",
	} {
		word := before[strings.LastIndex(before, " ")+1:]
		if got := fmt.Sprint(e.candidates(before, word)); got != want {
			t.Errorf("%q: %s, want %s", before, got, want)
		}
	}
}

func TestExternal(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "ed")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for command, want := range map[string]string{
		script(`[ "$(stat -c %a "$2")" = 600 ] && sed -i s/a/b/ "$2"`) + " --flag": "b c",
		script(`mv "$1" "$1".old; printf 'new\033\n' >"$1"; rm "$1".old`):          `new\x1b`,
		script(`exit 3`):              "",
		script(`printf '\377' >"$1"`): "",
		script(`rm "$1"`):             "",
		"/nonexistent/editor":         "",
		" ":                           "",
	} {
		got, err := external(null, command, "a c")
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q %v, want %q", command, got, err, want)
		}
	}
}
