package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// proof is the name of a test in a text.
var proof = regexp.MustCompile(`^Test[A-Z][A-Za-z0-9]*$`)

// What docs/security.md says is proved by a test names tests that there are: each
// belongs to the folder that was named last.
func TestProofsExist(t *testing.T) {
	tests := map[string]map[string]bool{}
	for _, s := range goFiles(t, true) {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !proof.MatchString(f.Name.Name) {
				continue
			}
			if tests[s.dir] == nil {
				tests[s.dir] = map[string]bool{}
			}
			tests[s.dir][f.Name.Name] = true
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir, found := "", 0
	for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
		switch word := m[1]; {
		case ours.MatchString(word):
			dir = word
		case proof.MatchString(word):
			if found++; !tests[dir][word] {
				t.Errorf("there is no %s in %s", word, dir)
			}
		}
	}
	if found < 50 {
		t.Errorf("it names %d tests", found)
	}
}
