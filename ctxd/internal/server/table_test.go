package server

import (
	"testing"

	"cortexfs.org/libctx/wire"
)

// TestTableIsComplete: what the decoder knows, the table carries out.
func TestTableIsComplete(t *testing.T) {
	for _, name := range wire.Ops() {
		if _, ok := ops[name]; !ok {
			t.Errorf("operation %s is decoded and not served", name)
		}
	}
	if len(ops) != len(wire.Ops()) {
		t.Errorf("%d rows for %d operations", len(ops), len(wire.Ops()))
	}
}
