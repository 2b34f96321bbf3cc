package arch

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range goFiles(t, true) {
		name := s.dir
		documented[name] = documented[name] || s.ast.Doc != nil
		if s.ast.Doc == nil {
			continue
		}
		want := "Package " + s.ast.Name.Name + " "
		if s.ast.Name.Name != "main" && !strings.HasSuffix(s.ast.Name.Name, "_test") && !strings.HasPrefix(s.ast.Doc.Text(), want) {
			t.Errorf("%s: the package comment does not begin with %q", s.path, want)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// usual are methods whose meaning their interface says.
var usual = []string{
	"Error", "Unwrap", "Is", "String", "Read", "Write", "Close", "Len", "Less", "Swap", "Push", "Pop",
	"MarshalText", "UnmarshalText", "Op", "Kind",
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range goFiles(t, false) {
		if s.ast.Name.Name == "main" {
			continue
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || receiverExported(d) && !slices.Contains(usual, d.Name.Name)) {
					t.Errorf("%s: %s has no doc comment", s.where(d), d.Name)
				}
			case *ast.GenDecl:
				checkDeclaration(t, s, d)
			}
		}
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if i, ok := n.(*ast.Ident); ok && name == "" {
			name = i.Name
		}
		return true
	})
	return ast.IsExported(name)
}

// checkDeclaration wants a comment at every exported type, and at every exported
// constant or variable or its group; values of a type of their own are explained
// by the type.
func checkDeclaration(t *testing.T, s *source, d *ast.GenDecl) {
	if first, ok := d.Specs[0].(*ast.ValueSpec); ok && d.Tok == token.CONST {
		if of, ok := first.Type.(*ast.Ident); ok && of.IsExported() {
			return
		}
	}
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) && spec.Comment == nil {
				t.Errorf("%s: %s has no doc comment", s.where(spec), spec.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && spec.Doc == nil && spec.Comment == nil && d.Doc == nil && d.Tok != token.IMPORT {
					t.Errorf("%s: %s has no doc comment", s.where(name), name)
				}
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, s := range goFiles(t, true) {
		if n := bytes.Count(s.text, []byte("\n")); n > 600 {
			t.Errorf("%s has %d lines: which second job has it taken on?", s.path, n)
		}
	}
}

// documents are the texts for readers: every Markdown file.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() && (rel == ".git" || rel == "bin" || rel == "dist" || rel == ".cache" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(p, ".md") {
			text, err := os.ReadFile(p)
			found[rel] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 5 {
		t.Fatalf("found %d documents", len(found))
	}
	return found
}

var (
	quoted = regexp.MustCompile("`([^`\\s]+)`")
	linked = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	named  = regexp.MustCompile(`\b(?:docs|packaging|systemd|scripts)/[a-zA-Z0-9_./@-]*[a-zA-Z0-9]`)
	ours   = regexp.MustCompile(`^(\.ci|ctx|ctxd|ctxterm|docs|libctx|packaging|scripts|systemd|tests|tsh)/[A-Za-z0-9_./@-]+$`)
)

// Paths that documents and comments name exist.
func TestNamedPathsExist(t *testing.T) {
	exists := func(from, path string) {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("%s names %s, which is not there", from, path)
		}
	}
	for name, text := range documents(t) {
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			if ours.MatchString(m[1]) {
				exists(name, m[1])
			}
		}
		for _, m := range linked.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(m[1], "://") {
				exists(name, filepath.Join(filepath.Dir(name), m[1]))
			}
		}
	}
	for _, s := range goFiles(t, true) {
		for _, group := range s.ast.Comments {
			for _, path := range named.FindAllString(group.Text(), -1) {
				exists(s.path, path)
			}
		}
	}
}
