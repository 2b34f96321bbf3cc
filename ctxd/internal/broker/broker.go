// Package broker keeps the permissions for calls between the decision and the
// start of the tool. A grant is for one call, once, for a short time: it is
// reserved, which takes it out of the broker whatever comes of it, and the
// reservation is either revoked or committed to a permit, which starts the one call
// whose intent has the digest the grant was made for. Nothing brings a grant back.
// docs/reference/admission.md has the order.
package broker

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/effect"
	"cortexfs.org/libctx/errdefs"
)

// Token is the secret that a grant is known by. The broker keeps its hash alone,
// and no tool, frame or log gets it.
type Token struct{ secret [32]byte }

// String hides the secret from whoever prints a token.
func (Token) String() string { return "effect_…" }

// GoString is String.
func (t Token) GoString() string { return t.String() }

// verifier is what is kept of a token.
type verifier [sha256.Size]byte

func (t Token) verifier() verifier {
	return sha256.Sum256([]byte("effect_" + hex.EncodeToString(t.secret[:])))
}

// grant is a permission that nobody has used.
type grant struct {
	digest  effect.Digest
	expires time.Time
}

// Broker holds grants. The zero value is ready and may be used by many goroutines.
type Broker struct {
	mu    sync.Mutex
	live  map[verifier]grant
	clock func() time.Time // nil is time.Now
}

func (b *Broker) now() time.Time {
	if b.clock == nil {
		return time.Now()
	}
	return b.clock()
}

// Grant makes a permission for the call with this digest, good for
// libctx.GrantLife. Errors: errdefs.Unavailable if libctx.MaxGrants wait already.
func (b *Broker) Grant(d effect.Digest) (Token, error) {
	var t Token
	_, _ = rand.Read(t.secret[:]) // never fails
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if len(b.live) >= libctx.MaxGrants {
		for v, g := range b.live {
			if !now.Before(g.expires) {
				delete(b.live, v)
			}
		}
	}
	if len(b.live) >= libctx.MaxGrants {
		return Token{}, errdefs.New(errdefs.Unavailable, "effect broker: %d grants wait to be used", libctx.MaxGrants)
	}
	if b.live == nil {
		b.live = map[verifier]grant{}
	}
	b.live[t.verifier()] = grant{d, now.Add(libctx.GrantLife)}
	return t, nil
}

// Reserve takes the grant of a token for the call with this digest. The grant is
// gone before it is looked at: an attempt with another digest, or too late, uses it
// up. Errors: errdefs.Denied.
func (b *Broker) Reserve(t Token, d effect.Digest) (*Reservation, error) {
	v := t.verifier()
	b.mu.Lock()
	g, ok := b.live[v]
	delete(b.live, v)
	b.mu.Unlock()
	switch {
	case !ok:
		return nil, errdefs.New(errdefs.Denied, "effect broker: there is no such grant, or it was used")
	case g.digest != d:
		return nil, errdefs.New(errdefs.Denied, "effect broker: the grant is for another call")
	}
	r := &Reservation{broker: b, grant: g}
	return r, r.inTime()
}

// Reservation is a grant that was taken for a call. Revoke it, or commit it; after
// either it is worth nothing.
type Reservation struct {
	broker *Broker
	grant  grant
	over   atomic.Bool
}

func (r *Reservation) inTime() error {
	if !r.broker.now().Before(r.grant.expires) {
		return errdefs.New(errdefs.Denied, "effect broker: the grant is older than %s", libctx.GrantLife)
	}
	return nil
}

// Revoke gives the reservation up. It may be called more than once, and after a
// commit it does nothing.
func (r *Reservation) Revoke() { r.over.Store(true) }

// Commit makes the reservation a permit. It can be done once. Errors:
// errdefs.Denied after Revoke, after Commit, and when the grant is too old.
func (r *Reservation) Commit() (*Permit, error) {
	if r.over.Swap(true) {
		return nil, errdefs.New(errdefs.Denied, "effect broker: the reservation was revoked or committed before")
	}
	if err := r.inTime(); err != nil {
		return nil, err
	}
	return &Permit{digest: r.grant.digest}, nil
}

// Permit is what starts one call, once.
type Permit struct {
	digest effect.Digest
	used   atomic.Bool
}

// Use consumes the permit for the call with this digest, immediately before it is
// started. Any use, also one that fails, is the only one, and nothing gives it
// back. Errors: errdefs.Denied.
func (p *Permit) Use(d effect.Digest) error {
	switch {
	case p == nil || p.used.Swap(true):
		return errdefs.New(errdefs.Denied, "effect broker: there is no permit, or it was used")
	case p.digest != d:
		return errdefs.New(errdefs.Denied, "effect broker: the permit is for another call")
	}
	return nil
}
