package hide

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"cortexfs.org/libctx/provider"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

const key = `Zq9-the-key/+="\>of 7741`

// each applies f to every byte of the key.
func each(f func(c byte) string) string {
	var b strings.Builder
	for i := range len(key) {
		b.WriteString(f(key[i]))
	}
	return b.String()
}

// forms are ways to write the key.
func forms() map[string]string {
	quoted, _ := jsontext.AppendQuote(nil, key)
	list := map[string]string{
		"verbatim":       key,
		"JSON":           string(quoted[1 : len(quoted)-1]),
		"JSON, slashes":  strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "/", `\/`),
		"JSON, numbers":  each(func(c byte) string { return fmt.Sprintf(`\u%04x`, c) }),
		"JSON, NUMBERS":  each(func(c byte) string { return fmt.Sprintf(`\u%04X`, c) }),
		"JSON, one":      `\u005a` + string(quoted[2:len(quoted)-1]),
		"URL, query":     url.QueryEscape(strings.ReplaceAll(key, " ", "%20")),
		"URL, path":      url.PathEscape(key),
		"URL, whole":     each(func(c byte) string { return fmt.Sprintf("%%%02x", c) }),
		"URL, WHOLE":     each(func(c byte) string { return fmt.Sprintf("%%%02X", c) }),
		"base64 escaped": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(key))),
	}
	list["URL, query"] = strings.ReplaceAll(url.QueryEscape(key), "+", "%20")
	for _, before := range []string{"", "u", "us", "use", "user"} {
		for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw": base64.RawStdEncoding} {
			list["base64 "+name+" after "+before] = e.EncodeToString([]byte(before + key + "\xfb\xff"))
			list["base64 "+name+" at the end after "+before] = e.EncodeToString([]byte(before + key))
		}
	}
	return list
}

// leak is the longest piece of a form that is still in a text.
func leak(text, form string) int {
	for n := len(form); n > 0; n-- {
		for i := range len(form) - n + 1 {
			if strings.Contains(text, form[i:i+n]) {
				return n
			}
		}
	}
	return 0
}

// TestForms: each is found in the middle of other text, and cut anywhere.
func TestForms(t *testing.T) {
	f := New(provider.NewSecret(key))
	for name, form := range forms() {
		text := "é<" + form + ">"
		whole := f.Text(text)
		// The outermost characters of base64 are of the neighbours too.
		if most := 3 + 8*strings.Count(name, "base64"); !strings.Contains(whole, Mask) || leak(whole, form) > most || !strings.HasPrefix(whole, "é<") || !strings.HasSuffix(whole, ">") {
			t.Errorf("%s: %q became %q", name, text, whole)
		}
		for i := range len(text) + 1 {
			s := Stream{Filter: f}
			if got := s.Next(text[:i]) + s.Next(text[i:]) + s.Rest(); got != whole {
				t.Errorf("%s, cut after %d: %q, not %q", name, i, got, whole)
			}
			if got := strings.Join(f.Texts([]string{text[:i], "", text[i:]}), ""); got != whole {
				t.Errorf("%s, in two texts after %d: %q, not %q", name, i, got, whole)
			}
		}
		s, got := Stream{Filter: f}, ""
		for i := range len(text) {
			got += s.Next(text[i : i+1])
		}
		if got += s.Rest(); got != whole {
			t.Errorf("%s, a byte at a time: %q, not %q", name, got, whole)
		}
	}
}

// TestOthers: what is not the key stays as it is, to the byte, and is not held
// back for longer than it might become one.
func TestOthers(t *testing.T) {
	f := New(provider.NewSecret(key))
	for _, text := range []string{"", "hello", key[:len(key)-1], key[1:], "100%", "%zz", `\`, `\u12`, `\u00e9 \n`, "é" + key[:5], strings.Repeat("Zq9-", 50)} {
		if got := f.Text(text); got != text {
			t.Errorf("%q: %q", text, got)
		}
		s := Stream{Filter: f}
		if got := s.Next(text) + s.Rest(); got != text {
			t.Errorf("%q in a stream: %q", text, got)
		}
		if got := s.Next("said.") + s.Next("\n"); got != "said.\n" {
			t.Errorf("held back: %q", got)
		}
	}
	if f := New(provider.Secret{}); f.Text(key) != key {
		t.Error("no key hides something")
	}
}

// TestOnce: what was put in is no text.
func TestOnce(t *testing.T) {
	for _, key := range []string{"d", "redacted", "[redacted]", "aaaaaaaa"} {
		f := New(provider.NewSecret(key))
		if got := f.Text("x" + key + key + "x"); got != "x"+Mask+Mask+"x" {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// TestAnyStream: however a text is cut, no form comes through whole, and a text
// without one comes through.
func TestAnyStream(t *testing.T) {
	f := New(provider.NewSecret(key))
	var pieces []string
	for _, form := range forms() {
		pieces = append(pieces, form, form[:len(form)/2], form[len(form)/2:])
	}
	pieces = append(pieces, " ", "é", "%", `\`, "text")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "text"), "")
		s, got := Stream{Filter: f}, ""
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got += s.Next(rest[:n])
			rest = rest[n:]
		}
		got += s.Rest()
		if len(f.Find(text)) == 0 && got != text || strings.Contains(got, key) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestValue(t *testing.T) {
	key := `Zq9-"key"\7741`
	f := New(provider.NewSecret(key))
	quoted, _ := jsontext.AppendQuote(nil, key)
	q := string(quoted[1 : len(quoted)-1])
	twice, _ := jsontext.AppendQuote(nil, q)
	for in, want := range map[string]string{
		`{"a":"` + q + `"}`:                                  `{"a":"[redacted]"}`,
		`{"` + q + `":[1.50,{"b":"x` + q + `y"}]}`:           `{"[redacted]":[1.50,{"b":"x[redacted]y"}]}`,
		`{"a":"\u005aq9\u002d\"key\"\\7\u0037\u0034\u0031"}`: `{"a":"[redacted]"}`,
		`{ "a" : "\u00e9\n" , "b":1e3 }`:                     `{ "a" : "\u00e9\n" , "b":1e3 }`,
		`{"a":` + string(twice) + `}`:                        `{"a":"[redacted]"}`,
		`{"` + q + `":1,"[redacted]":2}`:                     `null`,
		`null`:                                               `null`,
	} {
		if got := string(f.Value(jsontext.Value(in))); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
	}
	number := New(provider.NewSecret("12345678"))
	if got := string(number.Value(jsontext.Value(`{"a":-1123456780}`))); got != `{"a":"-1[redacted]0"}` {
		t.Error(got)
	}
	across := New(provider.NewSecret(`a":1,"b":`))
	if got := string(across.Value(jsontext.Value(`{"a":1,"b":2}`))); got != `null` {
		t.Error(got)
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{`{"a":"Zq9-the-key-7741"}`, `{"\u005aq9-the-key-7741":1}`, `[1,"x",{}]`, `{"a":`, `"\u00"`} {
		f.Add(s)
	}
	filter := New(provider.NewSecret("Zq9-the-key-7741"))
	f.Fuzz(func(t *testing.T, s string) {
		v := jsontext.Value(s)
		if !v.IsValid() {
			return
		}
		if got := filter.Value(v); !got.IsValid() || strings.Contains(string(got), "Zq9-the-key-7741") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
