package view

import (
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestAccepts(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ file, text, refusal string }{
		{"perm", "rwx\n", ""},
		{"uid", uid() + "\n", ""},
		{"uid", "4242\n", "reserved"},
		{"path", "/elsewhere\n", "path"},
		{"abi", "", "abi"},
	} {
		err := Accepts(w.Layout, "coder", c.file, []byte(c.text))
		if (err == nil) != (c.refusal == "") || err != nil && (!errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s %q: %v", c.file, c.text, err)
		}
	}
	// What is refused already may be repaired in any order.
	w.control("broken", map[string]string{"abi": "nonsense\n", "perm": "rwz\n"})
	if err := Accepts(w.Layout, "broken", "perm", []byte("rwx\n")); err != nil {
		t.Errorf("repair of one file of two: %v", err)
	}
}
