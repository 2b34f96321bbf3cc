package search

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// matching are the numbers of the matching lines, from 0.
func matching(m *matcher, text string) (all []int) {
	text = string(m.endings([]byte(text)))
	c := cursor{matcher: m, text: []byte(text), low: lower(nil, []byte(text))}
	if !m.fold {
		c.low = c.text
	}
	for from := 0; ; {
		begin, end, at, ok := c.find(from, func() bool { return false })
		if !ok {
			return all
		}
		if begin < from || at < begin || at > end || begin > 0 && text[begin-1] != '\n' || end < len(text) && text[end] != '\n' {
			panic("not a line")
		}
		all = append(all, strings.Count(text[:begin], "\n"))
		from = end + 1
	}
}

// naive looks at each line alone, without its ending; with cr that is LF alone.
func naive(re *regexp.Regexp, cr bool, text string) (all []int) {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		line, ended := strings.CutSuffix(line, "\n")
		if i == len(lines)-1 && line == "" {
			continue
		}
		if ended && !cr {
			line = strings.TrimSuffix(line, "\r")
		}
		if re.MatchString(line) {
			all = append(all, i)
		}
	}
	return all
}

func same(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// What is found by needles and pieces is what every line alone would say.
func TestFindsWhatEachLineMatches(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "K", "s", "é", ".", "[ab]", "[^a]", `\w`, `\s`, `\b`, "^", "$", "(a|bc)", "(ab|cd|e)", "a*", "b+", "(ab)?", "a{2}", "(?i:k)", "x", `\r`, `\z`, `\B`})
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(atom, 1, 4).Draw(t, "pattern"), "")
		fold := rapid.Bool().Draw(t, "fold")
		text := rapid.StringMatching(`([abcdekKsSſé \nx]|AB|\r\n|\r){0,60}`).Draw(t, "text")
		m, err := compile(pattern, false, fold)
		if err != nil {
			return // no expression; those that are refused have tests of their own
		}
		flags := ""
		if fold {
			flags = "(?i)"
		}
		if got, want := matching(m, text), naive(regexp.MustCompile(flags+pattern), strings.Contains(pattern, `\r`), text); !same(got, want) {
			t.Fatalf("%q in %q: lines %v, not %v", pattern, text, got, want)
		}
		lit := rapid.StringMatching(`[abcks.é]{1,3}`).Draw(t, "literal")
		if m, err = compile(lit, true, fold); err != nil {
			t.Fatal(err)
		}
		if got, want := matching(m, text), naive(regexp.MustCompile(flags+regexp.QuoteMeta(lit)), false, text); !same(got, want) {
			t.Fatalf("literal %q in %q: lines %v, not %v", lit, text, got, want)
		}
	})
}

// What a carriage return is to a pattern, in a file with both endings.
func TestCarriageReturns(t *testing.T) {
	const text = "foo\r\nfoo\nbar \r\na\rb\r\n\\run\r\n"
	for pattern, want := range map[string][]int{
		`foo$`: {0, 1}, `^foo\z`: {0, 1}, `\s$`: {2}, `foo.$`: nil, `[^a]$`: {0, 1, 2, 3, 4}, `a.b`: {3}, `\r`: {0, 2, 3, 4}, `\r$`: {0, 2, 3, 4},
		`foo\r?$`: {0, 1}, "foo\r": {0}, `a\rb`: {3}, `\\run`: {4}, `n$`: {4},
	} {
		m, err := compile(pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := matching(m, text); !same(got, want) {
			t.Errorf("%q: lines %v, not %v", pattern, got, want)
		}
	}
	for _, pattern := range []string{"foo", "foo\r"} {
		m, err := compile(pattern, true, false)
		if want := map[string][]int{"foo": {0, 1}, "foo\r": {0}}[pattern]; err != nil || !same(matching(m, text), want) {
			t.Errorf("literal %q: %v", pattern, matching(m, text))
		}
	}
}

func TestNeedles(t *testing.T) {
	for pattern, want := range map[string]string{
		"func main": "func main", `\bfunc\s+(\w+)\(`: "func", "(foo|barbaz)qux": "qux", "foo|bar|baz": "bar baz foo", "foo|.": "", "a*": "", "(long word){2,}x?": "long word",
		"(?i)deadline": "deadline", "(?i)mask": "ma", "(?i)ks": "", "x|yy|z|1|2|3|4|5|6": "",
	} {
		m, err := compile(pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, n := range m.needles {
			seen[string(n)] = true
		}
		for word := range strings.SplitSeq(want, " ") {
			if word != "" && want == pattern && !seen[want] || want != pattern && word != "" && !strings.Contains(want, " ") && !seen[word] {
				t.Errorf("%s: needles %v, want %q", pattern, seen, want)
			}
		}
		if want == "" && len(seen) > 0 {
			t.Errorf("%s: needles %v", pattern, seen)
		}
	}
}

// FuzzCompile: whatever a pattern is, it is refused or finds lines.
func FuzzCompile(f *testing.F) {
	for _, p := range []string{"a", "(?i)k+", `[^\n]`, `\A\z`, "(a|b)*c{3,5}", `(?s).*`, "[[:alpha:]]", `\pL`, "(?P<n>x)", "a{1000}", "]", "((((", `\Qa.b\E`} {
		f.Add(p, "some text\nwith lines\r\nK ſ\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 60 || len(text) > 500 {
			return
		}
		for _, mode := range []struct{ literal, fold bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
			m, err := compile(pattern, mode.literal, mode.fold)
			if err != nil {
				continue
			}
			matching(m, text)
		}
	})
}
