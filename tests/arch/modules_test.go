package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	requirement = regexp.MustCompile(`(?m)^\t(\S+) v\S+$`) // a direct one has no comment
	tableRow    = regexp.MustCompile("(?m)^\\| `([a-z]+\\.[^`]+)` \\| (.+) \\|$")
)

// Every dependency is used by the module that requires it, has a reason in
// docs/dependencies.md, and every reason has its dependency.
func TestDependenciesHaveReasons(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	reasons, needed := map[string]string{}, map[string]bool{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		reasons[m[1]] = m[2]
	}
	for _, module := range slices.Concat(modules, workshop) {
		mod, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
			dependency := m[1]
			needed[dependency] = true
			if dependency != prefix+"libctx" && reasons[dependency] == "" {
				t.Errorf("%s/go.mod: docs/dependencies.md has no reason for %s", module, dependency)
			}
			if !imported(t, module, dependency) {
				t.Errorf("%s/go.mod: nothing imports %s", module, dependency)
			}
		}
	}
	used(t, reasons, needed)
}

func imported(t *testing.T, module, dependency string) bool {
	for _, s := range goFiles(t, true) {
		if !strings.HasPrefix(s.path, module+"/") {
			continue
		}
		for _, path := range s.imports() {
			if path == dependency || strings.HasPrefix(path, dependency+"/") {
				return true
			}
		}
	}
	return false
}
