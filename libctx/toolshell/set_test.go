package toolshell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func entry(name string) Entry {
	return Entry{Name: libctx.Tool(name), Path: "/ctx/tool/" + name, Description: "does " + name}
}

// names of a set in the order in which they would be evicted, pinned ones with *.
func names(s Set) string {
	all := s.Entries()
	slices.SortFunc(all, func(a, b Entry) int { return int(a.LastUsed) - int(b.LastUsed) })
	var list []string
	for _, e := range all {
		n := string(e.Name)
		if e.Pinned {
			n += "*"
		}
		list = append(list, n)
	}
	return strings.Join(list, " ")
}

func evictedNames(gone []Entry) string {
	var list []string
	for _, e := range gone {
		list = append(list, string(e.Name))
	}
	return strings.Join(list, " ")
}

// Each step is a command with what is evicted and what is left behind it.
func TestSetSteps(t *testing.T) {
	var s Set
	const max = 2
	for _, c := range []struct{ do, evicted, left, err string }{
		{"load a", "", "a", ""},
		{"load b", "", "a b", ""},
		{"load a", "", "b a", ""},    // a load is a use
		{"load c", "b", "a c", ""},   // the least recently used goes
		{"pin a", "", "c a*", ""},    // a pin too
		{"load d", "", "c a* d", ""}, // pinned ones do not count
		{"load e", "c", "a* d e", ""},
		{"load a", "", "d e a*", ""}, // stays pinned
		{"unload a", "", "d e a*", "a is pinned"},
		{"unload x", "", "d e a*", "x is not loaded"},
		{"unpin x", "", "d e a*", "x is not loaded"},
		{"unpin d", "", "d e a*", "d is not pinned"},
		{"use d", "", "e a* d", ""},
		{"use x", "", "e a* d", ""},
		{"unpin a", "e", "a d", ""}, // now it counts
		{"pin d", "", "a d*", ""},
		{"load b", "", "a d* b", ""},
		{"use d", "", "a b d*", ""},
		{"pin c", "", "a b d* c*", ""},
		{"unpin c", "a", "b d* c", ""},
		{"unload b", "", "d* c", ""},
		{"unload c", "", "d*", ""},
		{"unpin d", "", "d", ""},
		{"unload d", "", "", ""},
	} {
		verb, name, _ := strings.Cut(c.do, " ")
		before := names(s)
		after, evicted, err := step(s, verb, name, max)
		if before != names(s) {
			t.Fatalf("%s: changed the set it was given", c.do)
		}
		if (err != nil) != (c.err != "") || err != nil && !strings.HasSuffix(c.err, err.Error()) || names(after) != c.left || evictedNames(evicted) != c.evicted {
			t.Fatalf("%s: evicts %q, leaves %q, %v", c.do, evictedNames(evicted), names(after), err)
		}
		s = after
	}
}

func step(s Set, verb, name string, max int) (after Set, evicted []Entry, err error) {
	switch verb {
	case "load":
		return s.Load(entry(name), max)
	case "pin":
		return s.Pin(entry(name), max)
	case "unload":
		after, _, err = s.Unload(libctx.Tool(name))
	case "unpin":
		after, _, evicted, err = s.Unpin(libctx.Tool(name), max)
	case "use":
		after, _ = s.Use(libctx.Tool(name))
	}
	return after, evicted, err
}

func TestPinnedIsUnavailable(t *testing.T) {
	s, _, err := Set{}.Pin(entry("a"), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Unload("a")
	if !errdefs.Is(err, errdefs.Unavailable) || errdefs.KindOf(err).Exit() != 69 || !strings.Contains(errdefs.HintOf(err), "unpin a") {
		t.Errorf("%v, %q", err, errdefs.HintOf(err))
	}
}

// However a set came about: names once and sorted, within its limits, the same
// after a round through its file; what is evicted was not pinned and was less
// recently used than everything unpinned that stayed, the tool of the step
// excepted.
func TestSetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			verb := rapid.SampledFrom([]string{"load", "load", "load", "pin", "unload", "unpin", "use"}).Draw(t, "verb")
			name := "t" + fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "tool"))
			max := rapid.IntRange(1, 6).Draw(t, "max")
			after, evicted, err := step(s, verb, name, max)
			if err != nil {
				if d := cmp.Diff(s.Entries(), after.Entries(), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("%s %s failed and changed: %s", verb, name, d)
				}
				continue
			}
			unpinned := 0
			for _, e := range after.Entries() {
				was, there := s.Find(e.Name)
				if there && was.Pinned && !e.Pinned && (verb != "unpin" || string(e.Name) != name) {
					t.Fatalf("%s %s unpinned %s", verb, name, e.Name)
				}
				if !e.Pinned {
					unpinned++
				}
			}
			if (verb == "load" || verb == "pin" || verb == "unpin") && unpinned > max {
				t.Fatalf("%s %s left %d unpinned, the limit is %d", verb, name, unpinned, max)
			}
			for _, gone := range evicted {
				if was, _ := s.Find(gone.Name); was.Pinned && (verb != "unpin" || string(gone.Name) != name) {
					t.Fatalf("%s %s evicted the pinned %s", verb, name, gone.Name)
				}
				for _, e := range after.Entries() {
					if !e.Pinned && string(e.Name) != name && e.LastUsed < gone.LastUsed {
						t.Fatalf("%s %s evicted %s and kept %s", verb, name, gone.Name, e.Name)
					}
				}
			}
			if e, ok := after.Find(libctx.Tool(name)); (verb == "load" || verb == "pin") && (!ok || e.LastUsed != after.now()-1) {
				t.Fatalf("%s %s: %+v", verb, name, e)
			}
			text, err := after.Encode()
			if err != nil || len(text) > libctx.MaxLoadedSet {
				t.Fatalf("%d bytes, %v", len(text), err)
			}
			again, err := Decode(text)
			if d := cmp.Diff(after.Entries(), again.Entries(), cmpopts.EquateEmpty()); d != "" || err != nil {
				t.Fatalf("%v %s", err, d)
			}
			s = after
		}
	})
}

// Tools with long schemas: the oldest go before the file is too long, and if
// only pinned ones are left the new one is refused.
func TestSetBytes(t *testing.T) {
	big := func(name string) Entry {
		e := entry(name)
		e.Schema = jsontext.Value(`{"title":"` + strings.Repeat("x", 15<<10) + `"}`)
		return e
	}
	var s Set
	var err error
	for i := range 10 {
		if s, _, err = s.Load(big(fmt.Sprint("t", i)), 64); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(s); got != "t6 t7 t8 t9" {
		t.Errorf("left: %s", got)
	}
	for _, name := range []string{"t6", "t7", "t8", "t9"} {
		if s, _, err = s.Pin(big(name), 64); err != nil {
			t.Fatal(err)
		}
	}
	if after, _, err := s.Load(big("t0"), 64); !errdefs.Is(err, errdefs.NoSpace) || names(after) != names(s) {
		t.Errorf("%v, left %s", err, names(after))
	}
}

func TestDecodeRefuses(t *testing.T) {
	one := `{"name":"a","path":"/x","description":"","pinned":false,"last_used":1}`
	for _, text := range []string{
		"", "{}", "[]", "null", `{"version":2,"tools":[]}`, `{"version":1,"tools":{}}`,
		`{"version":1,"tools":[` + one + `,` + one + `]}`,
		`{"version":1,"tools":[{"name":"../a"}]}`, `{"version":1,"tools":[{}]}`,
		`{"version":1,"tools":[{"name":"a","schema":[]}]}`,
		`{"version":1,"tools":[{"name":"a","last_used":-1}]}`,
		`{"version":1,"tools":[{"name":"a","last_used":18446744073709551615}]}`,
		`{"version":1,"tools":[]} x`, `{"version":1,"tools":[]` + strings.Repeat(" ", 70000) + "}",
	} {
		if s, err := Decode([]byte(text)); !errdefs.Is(err, errdefs.Invalid) || len(s.entries) != 0 {
			t.Errorf("%.80s: %v, %v", text, s, err)
		}
	}
	// What an older or newer version adds does not matter.
	s, err := Decode([]byte(`{"version":1,"extra":1,"tools":[{"name":"a","path":"/x","dynamic_resident":true,"pinned":true,"last_used":7}]}`))
	if e, ok := s.Find("a"); err != nil || !ok || !e.Pinned || e.LastUsed != 7 {
		t.Errorf("%+v, %v", e, err)
	}
}

func FuzzDecode(f *testing.F) {
	s, _, _ := Set{}.Pin(entry("a"), 3)
	s, _, _ = s.Load(Entry{Name: "b.c", Schema: jsontext.Value(`{"properties":{"x":true}}`)}, 3)
	text, _ := s.Encode()
	for _, seed := range []string{string(text), "", "{}", `{"version":1,"tools":[]}`, `{"version":1,"tools":[{"name":"a","last_used":9007199254740992}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Decode(text)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil || len(again) > libctx.MaxLoadedSet {
			t.Fatalf("%q: %d bytes, %v", text, len(again), err)
		}
		back, err := Decode(again)
		if d := cmp.Diff(s.Entries(), back.Entries(), cmpopts.EquateEmpty()); d != "" || err != nil {
			t.Fatalf("%q: %v %s", text, err, d)
		}
		if n := len(s.Context(libctx.MaxContextText)); n > libctx.MaxContextText {
			t.Fatalf("%d bytes of context", n)
		}
		if _, _, err := s.Load(entry("new"), 1); err != nil && !errdefs.Is(err, errdefs.NoSpace) {
			t.Fatal(err)
		}
	})
}
