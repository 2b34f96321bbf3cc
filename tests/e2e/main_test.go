// Package e2e drives the suite's real programs through their sockets, as the
// present user.
package e2e

import (
	"testing"

	"cortexfs.org/tests/internal/world"
)

func TestMain(m *testing.M) { world.Main(m) }
