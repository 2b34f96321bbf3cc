package control

import (
	"cmp"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// ParseEnv reads the file env: KEY=VALUE lines, each key once. Values are taken
// as they stand, quotes and dollar signs too. Keys the runtime owns may be
// there and have no effect (RuntimeOwned).
func ParseEnv(text []byte) ([]string, error) { return assignments("env", text) }

// assignments reads a file of KEY=VALUE lines, each key once.
func assignments(file string, text []byte) ([]string, error) {
	seen := map[string]bool{}
	return list(file, text, func(s string) (string, error) {
		key, val, ok := strings.Cut(s, "=")
		if !ok {
			return "", linefile.Refuse(0, s, "is not KEY=VALUE")
		}
		if !isKey(key) {
			return "", linefile.Refuse(0, cmp.Or(key, s), "is not a name of letters, digits and _")
		}
		if seen[key] {
			return "", linefile.Refuse(0, key, "is set twice")
		}
		if len(val) > libctx.MaxEnvValue {
			return "", linefile.Refuse(0, key, "has a value of more than %d bytes", libctx.MaxEnvValue)
		}
		if _, bad := linefile.Control(val, "\t"); bad {
			return "", linefile.Refuse(0, key, "has a control character in its value")
		}
		seen[key] = true
		return s, nil
	})
}

// isKey is [A-Za-z_][A-Za-z0-9_]*.
func isKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

// runtimeOwned are the variables the runtime sets itself, besides all CTX_ ones.
var runtimeOwned = []string{"HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "PATH"}

// RuntimeOwned reports whether the runtime sets this variable, so that the env
// control can not.
func RuntimeOwned(name string) bool {
	return strings.HasPrefix(name, "CTX_") || slices.Contains(runtimeOwned, name)
}
