package broker

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/errdefs"
	"pgregory.net/rapid"
)

var (
	one = effect.Digest{1}
	two = effect.Digest{2}
)

// denied fails unless err is a refusal that says why.
func denied(t *testing.T, what string, err error, why string) {
	t.Helper()
	if !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v, want a refusal: %s", what, err, why)
	}
}

func reserve(t *testing.T, b *Broker, d effect.Digest) *Reservation {
	t.Helper()
	token, err := b.Grant(d)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Reserve(token, d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOnce(t *testing.T) {
	var b Broker
	token, err := b.Grant(one)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Reserve(token, one)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Reserve(token, one)
	denied(t, "reserved twice", err, "was used")
	p, err := r.Commit()
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Commit()
	denied(t, "committed twice", err, "committed before")
	r.Revoke() // after a commit this changes nothing
	if err := p.Use(one); err != nil {
		t.Error(err)
	}
	denied(t, "used twice", p.Use(one), "was used")
	denied(t, "no permit", (*Permit)(nil).Use(one), "no permit")
}

func TestAnotherCall(t *testing.T) {
	var b Broker
	token, _ := b.Grant(one)
	_, err := b.Reserve(token, two)
	denied(t, "reserved for another call", err, "another call")
	_, err = b.Reserve(token, one)
	denied(t, "after a wrong attempt", err, "was used")

	p, err := reserve(t, &b, one).Commit()
	if err != nil {
		t.Fatal(err)
	}
	denied(t, "used for another call", p.Use(two), "another call")
	denied(t, "after a wrong use", p.Use(one), "was used")
	_, err = b.Reserve(Token{}, one)
	denied(t, "a token of nobody", err, "no such grant")
}

func TestTooLate(t *testing.T) {
	now := time.Now()
	b := Broker{clock: func() time.Time { return now }}
	token, _ := b.Grant(one)
	held := reserve(t, &b, two)
	now = now.Add(libctx.GrantLife - 1)
	last := reserve(t, &b, one)
	now = now.Add(1)
	_, err := b.Reserve(token, one)
	denied(t, "reserved too late", err, "older")
	_, err = held.Commit()
	denied(t, "committed too late", err, "older")
	if _, err := last.Commit(); err != nil {
		t.Error(err)
	}
}

func TestRevoked(t *testing.T) {
	var b Broker
	r := reserve(t, &b, one)
	r.Revoke()
	r.Revoke()
	_, err := r.Commit()
	denied(t, "committed after revoke", err, "revoked")
}

func TestFull(t *testing.T) {
	now := time.Now()
	b := Broker{clock: func() time.Time { return now }}
	for range libctx.MaxGrants {
		if _, err := b.Grant(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Grant(one); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("%v", err)
	}
	now = now.Add(libctx.GrantLife)
	if _, err := b.Grant(one); err != nil || len(b.live) != 1 {
		t.Errorf("%v, %d live", err, len(b.live))
	}
}

// TestSecret: neither a token nor a broker shows what a token is known by.
func TestSecret(t *testing.T) {
	var b Broker
	token, _ := b.Grant(one)
	again, _ := b.Grant(one)
	if token == again {
		t.Error("two grants have one token")
	}
	shown := fmt.Sprintf("%v %+v %#v %s", token, token, token, token)
	if strings.Contains(shown, fmt.Sprintf("%x", token.secret[:4])) || strings.Count(shown, "effect_…") != 4 {
		t.Errorf("a token shows as %s", shown)
	}
	for v := range b.live {
		if v == verifier(token.secret) {
			t.Error("the secret itself is kept")
		}
	}
}

// TestRaces: of many who try at once one succeeds.
func TestRaces(t *testing.T) {
	var b Broker
	for range 100 {
		token, _ := b.Grant(one)
		var wins atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				r, err := b.Reserve(token, one)
				if err != nil {
					return
				}
				for range 4 {
					all.Go(func() {
						p, err := r.Commit()
						if err != nil {
							return
						}
						for range 4 {
							all.Go(func() {
								if p.Use(one) == nil {
									wins.Add(1)
								}
							})
						}
					})
				}
			})
		}
		all.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d calls began with one grant", wins.Load())
		}
	}
}

// TestAnyOrder: whatever is tried in whatever order, no more calls begin than were
// granted, and each one that was.
func TestAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		b := Broker{clock: func() time.Time { return now }}
		digests := []effect.Digest{one, two}
		granted, began := map[effect.Digest]int{}, map[effect.Digest]int{}
		var tokens []Token
		var reserved []*Reservation
		var permits []*Permit
		digest := func() effect.Digest { return rapid.SampledFrom(digests).Draw(t, "digest") }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				d := digest()
				if token, err := b.Grant(d); err == nil {
					granted[d]++
					tokens = append(tokens, token)
				}
			case 1:
				if len(tokens) > 0 {
					if r, err := b.Reserve(rapid.SampledFrom(tokens).Draw(t, "token"), digest()); err == nil {
						reserved = append(reserved, r)
					}
				}
			case 2:
				if len(reserved) > 0 {
					if p, err := rapid.SampledFrom(reserved).Draw(t, "reservation").Commit(); err == nil {
						permits = append(permits, p)
					}
				}
			case 3:
				if len(permits) > 0 {
					d := digest()
					if rapid.SampledFrom(permits).Draw(t, "permit").Use(d) == nil {
						began[d]++
					}
				}
			case 4:
				if len(reserved) > 0 {
					rapid.SampledFrom(reserved).Draw(t, "reservation").Revoke()
				}
			case 5:
				now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			}
			for d, n := range began {
				if n > granted[d] {
					t.Fatalf("%d calls began with %d grants", n, granted[d])
				}
			}
		}
	})
}

func BenchmarkGrant(b *testing.B) {
	var of Broker
	b.ReportAllocs()
	for b.Loop() {
		token, err := of.Grant(one)
		if err != nil {
			b.Fatal(err)
		}
		r, _ := of.Reserve(token, one)
		p, _ := r.Commit()
		if err := p.Use(one); err != nil {
			b.Fatal(err)
		}
	}
}
