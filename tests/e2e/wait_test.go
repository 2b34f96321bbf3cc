package e2e

import (
	"net"
	"path/filepath"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// awaitSocket waits until an agent's own socket accepts: a server writes its pid
// control once it does.
func awaitSocket(t *testing.T, w *world.World, agent string) {
	t.Helper()
	path := filepath.Join(w.Root, "agent", agent)
	w.Await(path+".d", func() bool {
		c, err := net.Dial("unix", path+".sock")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}
