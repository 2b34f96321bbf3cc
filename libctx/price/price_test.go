package price

import (
	"math"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/session"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	all, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	for m, p := range all {
		switch {
		case !strings.Contains(string(m), "/"):
			t.Errorf("%s: is an alias", m)
		case p.input == unknown || p.output == unknown:
			t.Errorf("%s: has no price of input or output", m)
		case p.cacheRead > p.input:
			t.Errorf("%s: reading a cache costs more than not having one", m)
		}
	}
	if !strings.Contains(string(table), "as of 20") {
		t.Error("the table does not say of when it is")
	}
}

func TestCost(t *testing.T) {
	for _, c := range []struct {
		model libctx.Model
		use   session.Tokens
		want  int64
		known bool
	}{
		{"openai/gpt-4o", session.Tokens{Input: 1_000_000}, 2_500_000_000_000, true},
		{"openai/gpt-4o", session.Tokens{Input: 10, CacheRead: 4, Output: 2}, 50_000_000, true},
		{"anthropic/claude-haiku-4-5", session.Tokens{CacheWrite: 3}, 3_750_000, true},
		{"debug/echo", session.Tokens{Input: 1 << 40, Output: 1 << 40}, 0, true},
		{"openai/gpt-4o", session.Tokens{}, 0, true},
		{"openai/gpt-4o", session.Tokens{CacheWrite: 1}, 0, false},
		{"openai/gpt-4o", session.Tokens{Input: -1}, 0, false},
		{"openai/gpt-4o", session.Tokens{Input: math.MaxInt64}, 0, false},
		{"openai/gpt-4o", session.Tokens{Input: math.MaxInt64 / 2_500_000, Output: 1}, 0, false},
		{"mine/gpt-4o", session.Tokens{Input: 1}, 0, false},
		{"main", session.Tokens{}, 0, false},
	} {
		if got, known := Cost(c.model, c.use); got != c.want || known != c.known {
			t.Errorf("%s %+v: %d %v", c.model, c.use, got, known)
		}
	}
}

// A sum of uses costs the sum of what they cost.
func TestCostAdds(t *testing.T) {
	tokens := rapid.Custom(func(t *rapid.T) session.Tokens {
		n := rapid.Int64Range(0, 1<<30)
		return session.Tokens{Input: n.Draw(t, "in"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write"), Output: n.Draw(t, "out")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := tokens.Draw(t, "a"), tokens.Draw(t, "b")
		both := session.Tokens{Input: a.Input + b.Input, CacheRead: a.CacheRead + b.CacheRead, CacheWrite: a.CacheWrite + b.CacheWrite, Output: a.Output + b.Output}
		const model = "anthropic/claude-opus-4-5"
		x, _ := Cost(model, a)
		y, _ := Cost(model, b)
		if sum, known := Cost(model, both); !known || sum != x+y {
			t.Fatalf("%d + %d = %d, %v", x, y, sum, known)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{
		"p/m 1 2 3\n", "p/m 1 2 3 4 5\n", "p/m 1 2 3 x\n", "p/m 1 2 3 -1\n", "p/m 01 2 3 4\n", "p/m 1.5 2 3 4\n",
		"p/m 1 2 3 9223372036854775808\n", "-p/m 1 2 3 4\n", "p/m 1 2 3 4\np/m 1 2 3 4\n", "p/m 1 2 3 4\n\n",
	} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Add([]byte("p/m 1 - 3 4\n"))
	f.Add([]byte("# nothing\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parse(text)
		if err != nil && all != nil {
			t.Error("an error and a table")
		}
		for m, p := range all {
			if n, known := p.of(session.Tokens{Input: 1, Output: 1}); known && n < 0 {
				t.Errorf("%s costs %d", m, n)
			}
		}
	})
}
