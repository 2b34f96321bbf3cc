// Package arch holds the rules about the suite's shape that a compiler does not
// know: who may import whom, where the environment is read, what is documented.
// Every exception stands in a table, with its reason.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root is the top of the repository, seen from this package.
const root = "../.."

// modules are the folders of go.work, workshop those of modules apart from it, of
// which nothing is installed; programs those that become binaries, by
// folder of their main package.
var (
	modules  = []string{"ctx", "ctxd", "ctxterm", "libctx", "tests", "tsh"}
	workshop = []string{"packaging"}
	programs = []string{"ctx", "ctxd", "ctxd/cmd/ctxmodel", "ctxterm", "tsh", "tsh/cmd/ctxtool"}
)

// source is one Go file.
type source struct {
	path string // from the top of the repository
	dir  string
	test bool // a _test.go file, or below tests/ or a testdata directory
	ast  *ast.File
	set  *token.FileSet
	text []byte
}

// where says file and line of a node.
func (s *source) where(n ast.Node) string { return s.set.Position(n.Pos()).String() }

// imports are the paths the file imports.
func (s *source) imports() []string {
	var all []string
	for _, i := range s.ast.Imports {
		all = append(all, strings.Trim(i.Path.Value, `"`))
	}
	return all
}

// calls are the calls of names in a package, "os.Exit", however it was imported.
func (s *source) calls(pkg string, names ...string) []ast.Node {
	local := ""
	for _, i := range s.ast.Imports {
		if strings.Trim(i.Path.Value, `"`) == pkg {
			local = path.Base(pkg)
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	if local == "" {
		return nil
	}
	var found []ast.Node
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			found = append(found, sel)
		}
		return true
	})
	return found
}

// sources are all Go files of the repository, parsed once.
var sources = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	for _, module := range slices.Concat(modules, workshop) {
		err := filepath.WalkDir(filepath.Join(root, module), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			s := &source{path: rel, dir: filepath.Dir(rel), set: token.NewFileSet(), text: text}
			s.test = strings.HasSuffix(rel, "_test.go") || strings.HasPrefix(rel, "tests/") || strings.Contains(rel, "/testdata/")
			s.ast, err = parser.ParseFile(s.set, rel, text, parser.ParseComments|parser.SkipObjectResolution)
			all = append(all, s)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
})

// goFiles are the files that become part of a binary, or with tests all of them.
func goFiles(t *testing.T, tests bool) []*source {
	t.Helper()
	all, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("found %d Go files", len(all))
	}
	if !tests {
		all = slices.DeleteFunc(slices.Clone(all), func(s *source) bool { return s.test })
	}
	return all
}

// used checks that every exception of a table still is one.
func used(t *testing.T, table map[string]string, seen map[string]bool) {
	t.Helper()
	for name, reason := range table {
		if !seen[name] {
			t.Errorf("%s is no exception any more (%s): remove it from the table", name, reason)
		}
	}
}
