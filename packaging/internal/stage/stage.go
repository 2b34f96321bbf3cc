// Package stage gathers what packages are made of in one folder, with the names,
// modes and times it has in them:
//
//	bin/            programs
//	man/            manual pages, compressed
//	completions/    by shell
//	doc/            the pages of docs
//	systemd/        units and what belongs to them
//	scripts/        what runs when packages come and go
//	PACKAGE/        copyright, changelog.Debian.gz and lintian-overrides of one
//
// The same sources and the same time give the same bytes.
package stage

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// From says where things are.
type From struct {
	Top       string // the top directory of the sources
	Programs  string
	Reference string // manual pages and completions
}

// Fill fills the folder into, which is made.
func Fill(into string, from From, when time.Time) error {
	s := &stage{into: into}
	s.tree(from.Programs, "bin", func(name string) bool { return !strings.Contains(name, "/") })
	s.tree(from.Reference, "", all)
	s.tree(filepath.Join(from.Top, "docs"), "doc", func(name string) bool {
		return strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, "man/")
	})
	s.tree(filepath.Join(from.Top, "systemd"), "systemd", func(name string) bool { return !strings.HasSuffix(name, ".md") })
	s.tree(filepath.Join(from.Top, "packaging/scripts"), "scripts", all)
	s.tree(filepath.Join(from.Top, "packaging/lintian"), "lintian", all)
	s.file(filepath.Join(from.Top, "agent.sh"), "bin/ctx-agent.sh")
	if s.err == nil {
		s.err = s.date(when)
	}
	return s.err
}

func all(string) bool { return true }

// stage keeps the first error.
type stage struct {
	into string
	err  error
}

// tree copies the files below a folder that are wanted.
func (s *stage) tree(from, to string, wanted func(name string) bool) {
	if s.err != nil {
		return
	}
	s.err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err == nil && wanted(name) {
			s.file(path, filepath.Join(to, name))
		}
		return err
	})
}

// file copies one file; manual pages are compressed.
func (s *stage) file(from, to string) {
	if s.err != nil {
		return
	}
	text, err := os.ReadFile(from)
	if err != nil {
		s.err = err
		return
	}
	if strings.HasPrefix(to, "man/") {
		text, to = Gzip(text), to+".gz"
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(to, "bin/") || strings.HasPrefix(to, "scripts/") {
		mode = 0o755
	}
	s.err = Write(filepath.Join(s.into, to), text, mode)
}

// Write writes a file and makes the folders above it.
func Write(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask
}

// Gzip compresses as well as it can, without a name or a time.
func Gzip(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

// date gives everything one time, and folders their mode whatever the umask.
func (s *stage) date(when time.Time) error {
	return filepath.WalkDir(s.into, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		if err != nil {
			return err
		}
		if err := os.Chtimes(path, when, when); err != nil {
			return fmt.Errorf("date: %w", err)
		}
		return nil
	})
}
