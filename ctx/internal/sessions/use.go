package sessions

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/ctx/internal/render"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/session"
)

// use is what requests to models used, as far as the record knows.
type use struct {
	requests int64 // whose tokens are known
	unpriced int64 // of those, the ones whose price is not known
	unknown  int64 // attempts of which nothing is known
	tokens   session.Tokens
	cost     int64 // picodollars
	models   []libctx.Model
}

// Amounts is a use as --json prints it. A number is null if nothing of it is
// known, and a lower bound unless it is said to be complete.
type Amounts struct {
	Models         []libctx.Model `json:"models"`
	Requests       int64          `json:"requests"` // whose use is known
	Unknown        int64          `json:"unknown_requests"`
	Input          *int64         `json:"input_tokens"` // the four are disjoint
	CacheRead      *int64         `json:"cache_read_tokens"`
	CacheWrite     *int64         `json:"cache_write_tokens"`
	Output         *int64         `json:"output_tokens"`
	TokensComplete bool           `json:"tokens_complete"`
	Cost           *int64         `json:"cost_picodollars"`
	CostComplete   bool           `json:"cost_complete"`
}

func (u *use) add(r *session.Usage) {
	u.requests++
	t := session.Tokens{Input: r.Input, CacheRead: r.CacheRead, CacheWrite: r.CacheWrite, Output: r.Output}
	u.tokens = sum(u.tokens, t)
	if r.Cost != nil {
		u.cost += *r.Cost
	} else {
		u.unpriced++
	}
	u.with(r.Model)
}

func (u *use) with(m libctx.Model) {
	if m != "" && !slices.Contains(u.models, m) {
		u.models = append(u.models, m)
	}
}

func (u *use) join(v *use) {
	u.requests += v.requests
	u.unpriced += v.unpriced
	u.unknown += v.unknown
	u.tokens = sum(u.tokens, v.tokens)
	u.cost += v.cost
	for _, m := range v.models {
		u.with(m)
	}
}

func sum(a, b session.Tokens) session.Tokens {
	return session.Tokens{
		Input: a.Input + b.Input, CacheRead: a.CacheRead + b.CacheRead,
		CacheWrite: a.CacheWrite + b.CacheWrite, Output: a.Output + b.Output,
	}
}

func all(t session.Tokens) int64 { return t.Input + t.CacheRead + t.CacheWrite + t.Output }

// counted reports whether all tokens are known, and whether any are.
func (u *use) counted() (complete, some bool) {
	return u.unknown == 0, u.unknown == 0 || u.requests > 0
}

// priced reports the same of the cost.
func (u *use) priced() (complete, some bool) {
	complete = u.unknown == 0 && u.unpriced == 0
	return complete, complete || u.requests > u.unpriced
}

func (u *use) amounts() Amounts {
	a := Amounts{Models: append([]libctx.Model{}, u.models...), Requests: u.requests, Unknown: u.unknown}
	var some bool
	if a.TokensComplete, some = u.counted(); some {
		t := u.tokens
		a.Input, a.CacheRead, a.CacheWrite, a.Output = &t.Input, &t.CacheRead, &t.CacheWrite, &t.Output
	}
	if a.CostComplete, some = u.priced(); some {
		a.Cost = new(u.cost)
	}
	return a
}

// number shows one number of tokens.
func (u *use) number(n int64) string {
	complete, some := u.counted()
	return render.Known(strconv.FormatInt(n, 10), some, complete)
}

func (u *use) money() string {
	complete, some := u.priced()
	text := render.Dollars(u.cost)
	if !complete && strings.HasPrefix(text, "<") {
		text = "$0" // "at least less than" says nothing
	}
	return render.Known(text, some, complete)
}

// run is one run of a session with what it used.
type run struct {
	id      libctx.Run
	started string // ts of its first record
	outcome string // "" as long as it has no end
	tsh     bool
	use     use
}

// account reads what the runs of a session used, in the order in which they
// began. modelled says that the agent is driven by a model: then a run whose
// host died may have had a request under way that nothing was recorded of.
// Damaged lines come to damage, and what they said is missing.
func account(r *session.Reader, modelled bool, damage func(error)) ([]*run, error) {
	var runs []*run
	byID := map[libctx.Run]*run{}
	at := func(id libctx.Run, ts string) *run {
		if byID[id] == nil {
			byID[id] = &run{id: id, started: ts}
			runs = append(runs, byID[id])
		}
		return byID[id]
	}
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return runs, nil
		}
		if err != nil {
			return runs, err
		}
		if line.Err != nil {
			damage(line.Err)
		}
		switch rec := line.Record.(type) {
		case *session.Usage:
			at(rec.Run, rec.TS).use.add(rec)
		case *session.UsageUncertain:
			u := &at(rec.Run, rec.TS).use
			u.unknown++
			u.with(rec.Model)
		case *session.Fact:
			if h := rec.Frame.Header(); h.Type == "start" {
				at(rec.Run, rec.TS).begins(rec.Frame)
			}
		case *session.Checkpoint:
			x := at(rec.Run, rec.TS)
			x.outcome = rec.Outcome
			if rec.Outcome == session.Interrupted && modelled && !x.tsh {
				x.use.unknown++
			}
		}
	}
}
