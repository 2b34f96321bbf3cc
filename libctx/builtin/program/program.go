// Package program knows the programs of the host that some built-in tools are: bash,
// tmux and zellij. They are looked for in fixed places and never on PATH
// (docs/reference/tools.md).
package program

import (
	"os"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Places are where the program of a built-in tool can be, in order; nil if the tool
// is not one program of the host.
func Places(name libctx.Tool) []string {
	switch name {
	case "bash":
		return []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"}
	case "tmux", "zellij":
		return []string{"/usr/bin/" + string(name), "/usr/local/bin/" + string(name)}
	}
	return nil
}

// Find is the path of the program of a tool: the first executable file of its
// places. errdefs.Unavailable says that it is not installed.
func Find(name libctx.Tool) (string, error) {
	for _, path := range Places(name) {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errdefs.New(errdefs.Unavailable, "%s is not installed: it is none of %s", name, strings.Join(Places(name), ", ")).
		WithHint("install it on the host")
}

// Offered reports whether a built-in tool is for this machine: it is no program of
// the host, or one that is there.
func Offered(name libctx.Tool) bool {
	if len(Places(name)) == 0 {
		return true
	}
	_, err := Find(name)
	return err == nil
}
