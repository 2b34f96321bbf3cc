package edit

import (
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestEntry(t *testing.T) {
	t.Chdir("/")
	for p, want := range map[string]string{
		"/workspace/.git/config": ".git", "workspace/.envrc": ".envrc", "/workspace/a/../.vscode/x/y": ".vscode", "/workspace/x": "x",
		"/workspace": "", "/workspace/": "", "/etc/passwd": "", "/workspaces/x": "", "etc": "", "/workspace/../etc": "",
	} {
		if got, in := entry(p); got != want || in != (want != "") {
			t.Errorf("%s: %q %v", p, got, in)
		}
	}
	if err := (&target{path: "/usr/x"}).readOnly(); !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), "read-only file system") {
		t.Error(err)
	}
}
