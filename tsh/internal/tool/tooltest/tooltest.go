// Package tooltest calls built-in tools in tests, in directories made for them.
package tooltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json"
)

// Call runs a tool with a Go map as arguments.
func Call(t testing.TB, which tool.Tool, args map[string]any) (*tool.Output, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	out := new(tool.Output)
	return out, which.Call(t.Context(), raw, out)
}

// Place makes a directory of files, changes into it and returns its path.
func Place(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		Must(t, os.WriteFile(p, []byte(text), 0o644))
	}
	t.Chdir(dir)
	return dir
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// MustRefuse checks kind and form of an error, and that it, or its hint, has
// these words.
func MustRefuse(t testing.TB, err error, kind errdefs.Kind, words ...string) {
	t.Helper()
	if !errdefs.Is(err, kind) {
		t.Errorf("error is %v of kind %s, not %s", err, errdefs.KindOf(err), kind)
		return
	}
	text := err.Error() + " (" + errdefs.HintOf(err) + ")"
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("error does not say %q: %s", w, text)
		}
	}
	if strings.ContainsAny(text, "\n\r") {
		t.Errorf("error is not one line: %q", text)
	}
}
