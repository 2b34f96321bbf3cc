package attach

import (
	"bytes"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"pgregory.net/rapid"
)

// scanAll feeds typed to a scanner, cut where cut says.
func scanAll(s *scanner, chunks ...string) (program string, commands []command) {
	for _, chunk := range chunks {
		rest := []byte(chunk)
		for rest != nil {
			var c command
			var out []byte
			out, c, rest = s.scan(nil, rest)
			program += string(out)
			if c != nothing {
				commands = append(commands, c)
			}
		}
	}
	return program, commands
}

func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		key     Key
		typed   string
		program string
		want    []command
	}{
		"plain":                     {DefaultKey, "ls -l\r\x03\x04\x1a\x1b\t", "ls -l\r\x03\x04\x1a\x1b\t", nil},
		"detach":                    {DefaultKey, "a\x1ed", "a", []command{leaving}},
		"literally":                 {DefaultKey, "a\x1e\x1eb", "a\x1eb", nil},
		"explain":                   {DefaultKey, "\x1e?", "", []command{explain}},
		"no command":                {DefaultKey, "\x1exy", "y", []command{unknown}},
		"other key":                 {1, "\x1ed\x01d", "\x1ed", []command{leaving}},
		"no key":                    {NoKey, "\x1ed\x1b[94;5ud", "\x1ed\x1b[94;5ud", nil},
		"kitty":                     {DefaultKey, "\x1b[94;5ud", "", []command{leaving}},
		"kitty, by the digit":       {DefaultKey, "\x1b[54;5ud", "", []command{leaving}},
		"kitty, with shift":         {DefaultKey, "\x1b[54:94;6ud", "", []command{leaving}},
		"kitty, with locks":         {DefaultKey, "\x1b[54;197ud", "", []command{leaving}},
		"kitty, everything encoded": {DefaultKey, "\x1b[57442;5u\x1b[54;5:1u\x1b[54;5:3u\x1b[57442;1:3u\x1b[100;1:1u", "\x1b[57442;5u", []command{leaving}},
		"kitty, literally":          {DefaultKey, "\x1b[54;5u\x1b[54;5u", "\x1b[54;5u", nil},
		"kitty, explain":            {DefaultKey, "\x1b[54;5u\x1b[47:63;2u", "", []command{explain}},
		"kitty, explain by the key": {DefaultKey, "\x1b[54;5u\x1b[47;2u", "", []command{explain}},
		"kitty, other modifiers":    {DefaultKey, "\x1b[54;7ud\x1b[54;1u", "\x1b[54;7ud\x1b[54;1u", nil},
		"kitty, key let go":         {DefaultKey, "\x1b[54;5:3ud", "\x1b[54;5:3ud", nil},
		"modifyOtherKeys":           {DefaultKey, "\x1b[27;5;94~d", "", []command{leaving}},
		"modifyOtherKeys, digit":    {DefaultKey, "\x1b[27;5;54~\x1b[27;5;54~", "\x1b[27;5;54~", nil},
		"kitty, other key":          {1, "\x1b[97;5ud", "", []command{leaving}},
		"sequences pass":            {DefaultKey, "\x1b[A\x1b[1;5C\x1bOP\x1b[M \x1e!x\x1b[<0;3;4M\x1b[200~\x1b]", "\x1b[A\x1b[1;5C\x1bOP\x1b[M \x1e!x\x1b[<0;3;4M\x1b[200~\x1b]", nil},
		"utf-8":                     {DefaultKey, "žluťoučký 日本\x1ed", "žluťoučký 日本", []command{leaving}},
		"twice":                     {DefaultKey, "\x1ed\x1ed", "", []command{leaving, leaving}},
	} {
		program, got := scanAll(&scanner{key: c.key}, c.typed)
		if program != c.program || len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %q, %v", name, program, got)
		}
		// The same one byte at a time, as long as no stroke begins with something
		// that is a stroke itself.
		if strings.Contains(c.typed, "\x1b") {
			continue
		}
		if cut, again := scanAll(&scanner{key: c.key}, strings.Split(c.typed, "")...); cut != program || len(again) != len(got) {
			t.Errorf("%s, cut: %q, %v", name, cut, again)
		}
	}
}

// A sequence that is cut behind its first number is put together again; a lone
// Escape is not waited for.
func TestCutSequences(t *testing.T) {
	if program, got := scanAll(&scanner{key: DefaultKey}, "\x1b[9", "4;", "5", "u", "d"); program != "" || len(got) != 1 {
		t.Errorf("%q, %v", program, got)
	}
	if program, got := scanAll(&scanner{key: DefaultKey}, "\x1b"); program != "\x1b" || got != nil {
		t.Errorf("%q, %v", program, got)
	}
	if program, _ := scanAll(&scanner{key: DefaultKey}, "\x1b["); program != "\x1b[" {
		t.Errorf("%q", program)
	}
}

func TestWatchKeys(t *testing.T) {
	for typed, want := range map[string]int{
		"q": 1, "\x03": 1, "\x1ed": 1, "\x1b[99;5u": 1, "\x1b[113u": 1, "\x1e\x1eq": 1,
		"hello\r\x04": 0, "\x1b[M q!": 0, "\x1bq": 0, "\x1bOq": 0, "\x1b[<0;3;4M": 0, "\x1eq": 1, "\x1b[113;1:3u": 0,
	} {
		program, got := scanAll(&scanner{key: DefaultKey, watch: true}, typed)
		if program != "" || len(got) != want {
			t.Errorf("%q: %q, %v", typed, program, got)
		}
	}
}

// Without a key of its own the client changes nothing that is typed, however it
// is cut, and with one nothing that does not hold it.
func TestScanIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]Key{NoKey, DefaultKey, 1}).Draw(t, "key")
		s := &scanner{key: key}
		var typed, program []byte
		for range rapid.IntRange(1, 8).Draw(t, "chunks") {
			chunk := rapid.SliceOf(rapid.SampledFrom([]byte("\x1b[[;:0123456789uM~O<aqd\x00\xff\xc3\xa9"))).Draw(t, "chunk")
			typed = append(typed, chunk...)
			out, c, rest := s.scan(nil, chunk)
			if c != nothing || s.prefix {
				return // the key was among it, encoded
			}
			if rest != nil {
				t.Fatal("a rest without a command")
			}
			program = append(program, out...)
		}
		if !bytes.Equal(append(program, s.pending...), typed) || len(s.pending) > maxStroke {
			t.Fatalf("%q became %q and %q", typed, program, s.pending)
		}
	})
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("ls\r\x1ed"), false)
	f.Add([]byte("\x1b[54;5u\x1b[94;5u\x1b[27;5;94~"), false)
	f.Add([]byte("\x1b[M q!\x1b[<0;1;1Mq"), true)
	f.Fuzz(func(t *testing.T, typed []byte, watch bool) {
		s := &scanner{key: DefaultKey, watch: watch}
		for rest := typed; rest != nil; {
			before := len(rest)
			var out []byte
			var c command
			if out, c, rest = s.scan(nil, rest); watch && len(out) > 0 {
				t.Fatalf("a watcher sends %q", out)
			}
			if c != nothing && len(rest) >= before {
				t.Fatal("no progress")
			}
		}
	})
}

func TestParseKey(t *testing.T) {
	for text, want := range map[string]Key{
		"^A": 1, "^a": 1, "ctrl-x": 24, "Ctrl+X": 24, "C-b": 2, "^^": 0x1e, "^]": 0x1d, `^\`: 0x1c, "^_": 0x1f, "^@": 0, "none": NoKey,
	} {
		if got, err := ParseKey(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "^", "A", "a", "^[", "^M", "^I", "^J", "^H", "^1", "^ab", "ctrl-", "ctrl-ab", "alt-a", "^?", "^é", "NONE", "\x01"} {
		if got, err := ParseKey(text); !errdefs.Is(err, errdefs.Invalid) || got != NoKey {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if DefaultKey.String() != "Ctrl+^" || Key(1).String() != "Ctrl+A" || NoKey.String() != "none" {
		t.Error("names of keys")
	}
}
