package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/units"
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
		"ctx.mount":         {"What=" + paths.SystemTree, "Where=" + system.Root},
		"ctxd-admin.socket": {"ListenStream=" + paths.AdminSocket(system.Root)},
		"ctxd-admin.service": {
			"ExecStart=/usr/bin/ctxd --root " + system.Root + " admin",
			"ReadWritePaths=" + system.Root + " " + units.Files + " " + system.Runtime,
		},
		"ctxmodel.socket":  {"ListenStream=" + system.ModelSocket()},
		"ctxmodel.service": {"ExecStart=/usr/bin/ctxmodel serve --root " + system.Root + " --config " + system.Config + " --secrets " + system.Secrets},
		"cortexfs.target":  {"Wants=" + units.Mount + " " + units.AdminSocket + " " + units.ModelSocket},
		"tmpfiles.d/cortexfs.conf": {
			"d " + system.Runtime + " 0755 root root -",
			"d " + system.Sockets() + " 0755 root root -",
			"d " + system.Runs() + " 0711 root root -",
			"d " + system.Locks + " 0700 root root -",
			"d " + system.Providers() + " 0755 root root -",
			"d " + paths.SystemTree + " 0755 root root -",
			"d " + system.Secrets + " 0700 cortexfs-model cortexfs-model -",
		},
		"user/ctxd.service": {"ExecStart=/usr/bin/ctxd serve"},
	} {
		text, err := os.ReadFile(filepath.Join(root, "systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		squeezed := regexp.MustCompile(` +`).ReplaceAllString(string(text), " ")
		for _, line := range lines {
			if !strings.Contains(squeezed, "\n"+line+"\n") {
				t.Errorf("%s does not say %s", unit, line)
			}
		}
	}
}
