package admit

import (
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/policy"
)

func TestUseModel(t *testing.T) {
	for _, c := range []struct {
		rules    string
		name, id libctx.Model
		own      bool
		want     string // of the reason; "" is allowed
	}{
		{"allow a_t model:p/m use\n", "p/m", "p/m", false, ""},
		{"allow a_t model:p/m use\n", "main", "p/m", false, ""},
		{"allow a_t model:p/m use\n", "main", "p/m", true, ""},
		{"allow a_t model:main use\n", "main", "p/m", false, ""},
		{"allow a_t model:main use\n", "main", "p/m", true, "no line allows a_t model:p/m use, which is what main means"},
		{"allow a_t model:main use\n", "p/m", "p/m", false, "no line allows a_t model:p/m use"},
		{"allow b_t model:p/m use\n", "p/m", "p/m", false, "no line allows a_t model:p/m use"},
		{"allow a_t model:p/other use\n", "p/m", "p/m", false, "no line allows"},
		{"allow a_t tool:m execute\nallow a_t network:default connect\n", "p/m", "p/m", false, "no line allows"},
		{"", "p/m", "p/m", false, "no line allows"},
	} {
		p, err := policy.Parse([]byte(c.rules))
		if err != nil {
			t.Fatal(err)
		}
		v := UseModel(Agent{Name: "a", Subject: "a_t", Policy: p}, c.name, c.id, c.own)
		switch {
		case v.OK != (c.want == "") || v.OK != (v.Code == "") || v.OK != (v.Reason == ""):
			t.Errorf("%q, %s: %+v", c.rules, c.name, v)
		case !strings.HasPrefix(v.Reason, c.want):
			t.Errorf("%q, %s: %s", c.rules, c.name, v.Reason)
		case !v.OK && v.Want != "allow a_t model:p/m use in policy":
			t.Errorf("%q: wants %q", c.rules, v.Want)
		}
	}
}
