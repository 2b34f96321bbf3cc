package provider

import (
	"bytes"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const whole = `{"name":"lab","format":"openai.chat","base_url":"https://lab.example/v1","proxy":"http://127.0.0.1:3128","key":"required","key_slot":"work","models":[{"id":"a/big","name":"a-big","limit":200000,"max_output":8192},{"id":"small"}]}` + "\n"

var seeds = []string{
	whole,
	`{"name":"here","format":"openai.chat","base_url":"http://127.0.0.1:11434/v1","key":"none","models":[]}` + "\n",
	`{"name":"six","format":"openai.chat","base_url":"http://[::1]:8080","key":"none","models":[]}` + "\n",
	`{"name":"far","format":"openai.chat","base_url":"http://10.0.0.7/v1","insecure":true,"key":"none","models":[]}` + "\n",
}

func TestCanonical(t *testing.T) {
	for _, text := range seeds {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := p.Marshal()
		if err != nil || string(again) != text {
			t.Errorf("%s\nwritten as %s, %v", text, again, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	p, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"lab"`, `"debug"`}, {`"lab"`, `"../lab"`}, {`"lab"`, `"a/b"`}, {`"lab"`, `""`}, {`"lab"`, `"x.d"`},
		{`openai.chat`, `openai.completions`}, {`"format":"openai.chat",`, ``}, {`"required"`, `"maybe"`}, {`"required"`, `"none"`},
		{`"work"`, `"default"`}, {`"work"`, `"../work"`},
		{`https://lab.example/v1`, `ftp://lab.example`}, {`https://lab.example/v1`, `lab.example`}, {`https://lab.example/v1`, `https://`},
		{`https://lab.example/v1`, `https://me:secret@lab.example`}, {`https://lab.example/v1`, `https://me@lab.example`},
		{`https://lab.example/v1`, `https://lab.example/v1?key=1`}, {`https://lab.example/v1`, `https://lab.example/v1?`},
		{`https://lab.example/v1`, `https://lab.example/v1#x`}, {`https://lab.example/v1`, `https://lab.example/v1#`},
		{`https://lab.example/v1`, `https://lab.example/v1/`}, {`https://lab.example/v1`, `http://lab.example/v1`},
		{`https://lab.example/v1`, `http://localhost.evil/v1`}, {`https://lab.example/v1`, `http://127.0.0.1.evil/v1`},
		{`https://lab.example/v1`, `HTTPS://lab.example/v1`}, {`https://lab.example/v1`, `https://lab.example/a b`},
		{`https://lab.example/v1`, `https://lab.example/\n`}, {`https://lab.example/v1`, `https://läb.example`},
		{`https://lab.example/v1`, `https:lab.example/v1`}, {`https://lab.example/v1`, `https:///v1`}, {`https://lab.example/v1`, `https://lab.example:x/v1`},
		{`https://lab.example/v1`, `https://` + strings.Repeat("a", libctx.MaxURL) + `/v1`},
		{`http://127.0.0.1:3128`, `http://u:p@127.0.0.1:3128`}, {`http://127.0.0.1:3128`, `http://127.0.0.1:3128/x`}, {`http://127.0.0.1:3128`, `file:///x`},
		{`"a/big","name":"a-big"`, `"a/big"`}, {`"a-big"`, `"a/big"`}, {`"a/big","name":"a-big"`, `"small","name":"a"`},
		{`"small"`, `"a-big"`}, {`"small"`, `"B","name":"A"`}, {`"small"`, `""`}, {`"small"`, `"sm\u0007all"`}, {`"small"`, `"small","name":"small"`},
		{`"small"`, `"` + strings.Repeat("s", libctx.MaxModelID+1) + `"`},
		{`200000`, `-1`}, {`200000`, `4294967296`}, {`200000`, `100`}, {`200000`, `"1"`}, {`200000`, `1.5`},
		{`"key":`, `"Key":`}, {`"key":`, `"extra":1,"key":`}, {`"key":`, `"name":"x","key":`}, {"\n", "\n{}"},
	} {
		text := strings.Replace(whole, change[0], change[1], 1)
		if change[1] == `"small","name":"a"` {
			text = strings.Replace(text, `"id":"small"}`, `"id":"small","name":"a"}`, 1)
		}
		if text == whole {
			t.Errorf("%s: changes nothing", change[0])
		}
		if got, err := Parse([]byte(text)); got != nil || errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%s for %s: %v", change[1], change[0], err)
		} else if s := err.Error(); strings.Contains(s, "secret") || strings.Contains(s, "\n") {
			t.Errorf("%s: %q", change[1], s)
		}
	}
	for i := range libctx.MaxProviderModels {
		p.Models = append(p.Models, Model{ID: "x" + strings.Repeat("y", i%5)})
	}
	if _, err := p.Marshal(); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("too many models: %v", err)
	}
}

func TestLookups(t *testing.T) {
	p, err := Parse([]byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := p.Model("a-big"); !ok || m.ID != "a/big" {
		t.Errorf("%v %v", m, ok)
	}
	if _, ok := p.Model("a/big"); ok {
		t.Error("found by the provider's name")
	}
	if p.Slot() != "work" || (&Provider{}).Slot() != DefaultSlot {
		t.Error("slots")
	}
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"10.0.0.1": false, "localhost.": false, "LOCALHOST": false, "2130706433": false, "0.0.0.0": false, "": false,
	} {
		if Loopback(host) != want {
			t.Errorf("%q: not %v", host, want)
		}
	}
}

func TestEntryName(t *testing.T) {
	for id, want := range map[string]string{
		"gpt-5": "gpt-5", "meta/llama:8b": "meta-llama-8b", "../x": "x", "---": "", "": "", "a.d": "a", "x.sock.d": "x", "ä": "", "aä": "a--",
	} {
		if got := EntryName(id); got != want {
			t.Errorf("%q became %q, not %q", id, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := EntryName(rapid.String().Draw(t, "id"))
		if name != "" && CheckName(name) != nil {
			t.Fatalf("%q is not a name", name)
		}
	})
}

// What parses is written as text that parses to the same and is written alike.
func FuzzParse(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			if p != nil || !errdefs.Is(err, errdefs.Invalid) {
				t.Fatalf("%v, %v", p, err)
			}
			return
		}
		out, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if d := cmp.Diff(p, again); d != "" {
			t.Fatal(d)
		}
		twice, err := again.Marshal()
		if err != nil || !bytes.Equal(out, twice) {
			t.Fatalf("%s then %s, %v", out, twice, err)
		}
	})
}
