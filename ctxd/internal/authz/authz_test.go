package authz

import (
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/peercred"
)

func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		uid, owner uint32
		want       Subject
		ok         bool
	}{
		{1000, 1000, Owner, true},
		{0, 1000, Root, true},
		{0, 0, Owner, true},
		{1001, 1000, Stranger, false},
		{65534, 1000, Stranger, false}, // an unmapped uid is nobody's match
		{1000, 0, Stranger, false},
	} {
		got := Of(peercred.Peer{UID: c.uid}, c.owner)
		if got != c.want {
			t.Errorf("uid %d, owner %d: %v, want %v", c.uid, c.owner, got, c.want)
		}
		err := OwnerOrRoot.Check(got)
		if (err == nil) != c.ok || err != nil && !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("uid %d, owner %d: Check = %v", c.uid, c.owner, err)
		}
	}
}

func TestZeroNeedAdmitsNobody(t *testing.T) {
	for s := Stranger; s <= Root; s++ {
		if Need(0).Check(s) == nil {
			t.Errorf("subject %v passed an empty need", s)
		}
	}
}
