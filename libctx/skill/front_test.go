package skill

import (
	"strings"
	"testing"
	"unicode/utf8"

	"cortexfs.org/libctx/inert"
)

func TestFront(t *testing.T) {
	for _, c := range []struct{ text, name, description string }{
		{"---\nname: pdf\ndescription: Reads PDF files.\n---\nbody", "pdf", "Reads PDF files."},
		{"---\r\nname: pdf\r\ndescription: Reads.\r\n---\r\n", "pdf", "Reads."},
		{"\uFEFF---\nname: a\n...\n", "a", ""},
		{"---  \nname : a \ndescription:\tb\n---", "a", "b"},
		{"---\n---\n", "", ""},
		// plain
		{"---\ndescription: use when: the user asks\n---", "", "use when: the user asks"},
		{"---\ndescription: one\n  two\n\n\tthree # not this\nname: x\n---", "x", "one two three"},
		{"---\ndescription:\n  on the\n  next line\n---", "", "on the next line"},
		{"---\nname: c#\ndescription: # nothing\n---", "c#", ""},
		{"---\nname: 7\ndescription: true\n---", "7", "true"},
		// quoted
		{`---` + "\nname: 'it''s'\ndescription: \"a \\\"b\\\" \\u00e9 \\x41\\n\\U0001F600 c\" # x\n---", "it's", `a "b" é A 😀 c`},
		{"---\ndescription: \"one\n  two \\\n  three\n\n  four\"\n---", "", "one two three four"},
		{"---\ndescription: 'one\n  two'\n---", "", "one two"},
		{"---\ndescription: \"lone \\ud800\"\n---", "", "lone \uFFFD"},
		{"---\ndescription: \"\"\nname: ''\n---", "", ""},
		// blocks
		{"---\ndescription: >-\n  folded\n  text\n\n  more: text # kept\nname: x\n---", "x", "folded text more: text # kept"},
		{"---\ndescription: |\n  a\n    b\n---", "", "a b"},
		{"---\ndescription: |2+ # c\n  a\n---", "", "a"},
		{"---\ndescription: >\n---", "", ""},
		// what is passed over
		{"---\n# c\nlicense: MIT\nallowed-tools: [a, b]\nmetadata:\n  name: inner\n  description: inner\nname: outer\n---", "outer", ""},
		{"---\nlist:\n- name: inner\n- b\nname:outer\njunk\nname: a\n---", "a", ""},
		// what would act or hide
		{"---\nname: \"a\\e[31mb\"\ndescription: x\u202ey\x1b[1mz\x00\n---", "a [31mb", `x\u202ey\x1b[1mz␀`},
		{"---\nname: \xff\xfe\n---", "\uFFFD", ""},
	} {
		f, err := parseFront([]byte(c.text))
		if err != nil || f.name != c.name || f.description != c.description {
			t.Errorf("%q:\n%q %q, %v", c.text, f.name, f.description, err)
		}
	}
}

func TestFrontRefuses(t *testing.T) {
	for _, text := range []string{
		"", "name: x\n", "# Title\n---\nname: x\n---\n", " ---\nname: x\n---",
		"---\nname: x\n", "---\nname: x\n ---\n",
		"---\nname: x\nname: y\n---", "---\ndescription: x\ndescription: y\n---",
		"---\nname: [a]\n---", "---\nname: {a: b}\n---", "---\nname: *a\n---", "---\nname: &a b\n---", "---\nname: !!str a\n---",
		"---\nname: \"a\n---", "---\nname: 'a\n---", "---\nname: \"a\" b\n---", "---\nname: 'a'b\n---", "---\nname: 'a'#b\n---",
		"---\nname: \"\\q\"\n---", "---\nname: \"\\x4\"\n---", "---\nname: \"\\u+123\"\n---", "---\nname: \"\\UFFFFFFFF\"\n---", "---\nname: \"a\\\n---",
		"---\nname: >quote\n---", "---\nname: |a\n---", "---\nname: >- a\n---", "---\nname: |-#c\n---",
	} {
		if f, err := parseFront([]byte(text)); err == nil || f != (front{}) {
			t.Errorf("%q: %q, %v", text, f, err)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line", err)
		}
	}
}

func FuzzFront(f *testing.F) {
	for _, s := range []string{
		"---\nname: a\ndescription: >-\n  b\n---\n", "---\nname: \"a\\n\\x41\"\n---", "---\nname: 'a''b'\n---",
		"---\ndescription: |\n a\n\n b\n...", "---\nname: \"\\\n  x\"\n---", "\xff---\n---", "---\nname: &a *a\n---",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseFront(text)
		if err != nil && m != (front{}) {
			t.Fatal("an error with a value")
		}
		for _, s := range []string{m.name, m.description} {
			if !utf8.ValidString(s) || inert.Line(s) != s || len(s) > 6*len(text) {
				t.Fatalf("%q", s)
			}
		}
	})
}
