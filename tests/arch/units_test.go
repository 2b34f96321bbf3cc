package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/paths"
)

// The units name the paths that the programs use.
func TestUnitsNameRealPaths(t *testing.T) {
	system := paths.New(paths.Env{UID: 0}, paths.SystemRoot)
	for unit, lines := range map[string][]string{
		"ctxd@.socket": {
			"ListenStream=" + strings.Replace(system.Socket("NAME"), "NAME", "%i", 1),
			"Symlinks=" + strings.Replace(system.AgentLink("NAME"), "NAME", "%i", 1),
		},
		"ctxd@.service":     {"ExecStart=/usr/bin/ctxd --root " + system.Root + " agent %i"},
		"user/ctxd.service": {"ExecStart=/usr/bin/ctxd serve"},
	} {
		text, err := os.ReadFile(filepath.Join(root, "systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("%s does not say %s", unit, line)
			}
		}
	}
}
