// Package adversary attacks the suite: from inside of a sandbox, as a tool and
// as an executable agent, and from beside it, as another process of the same
// user. Package adversary/uids does so as another user of the machine.
//
// Each test is an attack that must fail. Where one check is what makes it fail,
// the test tries once more with that check switched off (libctx/fault), and then
// the attack must succeed.
package adversary

import (
	"testing"

	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) { world.Main(m) }
