// Package price turns used tokens into money: a small table of list prices,
// built in, dated, and never fetched. Prices are whole picodollars (10^-12 US
// dollars) per token. A model that is not in the table has no known price, which
// is not a price of zero (docs/reference/tree.md).
package price

import (
	_ "embed" // the table
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
)

//go:embed table.txt
var table []byte

// unknown is a price nobody stated.
const unknown = -1

// price is what one model costs, picodollars per token and bucket.
type price struct{ input, cacheRead, cacheWrite, output int64 }

var prices = sync.OnceValue(func() map[libctx.Model]price {
	all, err := parse(table)
	if err != nil {
		return nil // a test sees to it that the table parses
	}
	return all
})

// Cost is the price of the tokens of one or more requests to model
// provider/model, in picodollars. The buckets are disjoint. It is not known for
// a model that is not in the table, for tokens of a kind without a stated price,
// for a negative number of tokens, and for a sum that does not fit. The table
// goes by the names of models: who gives a provider the name of another gets
// that one's prices.
func Cost(model libctx.Model, t session.Tokens) (picodollars int64, known bool) {
	p, ok := prices()[model]
	if !ok {
		return 0, false
	}
	return p.of(t)
}

func (p price) of(t session.Tokens) (int64, bool) {
	var sum uint64
	for _, bucket := range []struct{ tokens, each int64 }{
		{t.Input, p.input}, {t.CacheRead, p.cacheRead}, {t.CacheWrite, p.cacheWrite}, {t.Output, p.output},
	} {
		switch {
		case bucket.tokens == 0:
			continue
		case bucket.tokens < 0, bucket.each == unknown:
			return 0, false
		}
		high, low := bits.Mul64(uint64(bucket.tokens), uint64(bucket.each))
		var carry uint64
		sum, carry = bits.Add64(sum, low, 0)
		if high != 0 || carry != 0 || sum > 1<<63-1 {
			return 0, false
		}
	}
	return int64(sum), true
}

// parse reads a table: # lines, and lines of a model and four prices, none
// twice. The error is errdefs.Invalid and names the line.
func parse(text []byte) (map[libctx.Model]price, error) {
	all := map[libctx.Model]price{}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 5 {
			return nil, errdefs.New(errdefs.Invalid, "line %d: has %d words, not a model and four prices", i+1, len(f))
		}
		m, err := libctx.ParseModel(f[0])
		if err != nil {
			return nil, errdefs.New(errdefs.Invalid, "line %d: %w", i+1, err)
		}
		var p price
		for j, to := range []*int64{&p.input, &p.cacheRead, &p.cacheWrite, &p.output} {
			if f[j+1] == "-" {
				*to = unknown
				continue
			}
			n, err := strconv.ParseUint(f[j+1], 10, 63)
			if err != nil || strconv.FormatUint(n, 10) != f[j+1] {
				return nil, errdefs.New(errdefs.Invalid, "line %d: %q is not a whole number of picodollars", i+1, f[j+1])
			}
			*to = int64(n)
		}
		if _, twice := all[m]; twice {
			return nil, errdefs.New(errdefs.Invalid, "line %d: %s is listed twice", i+1, m)
		}
		all[m] = p
	}
	return all, nil
}
