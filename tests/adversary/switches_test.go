package adversary

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/hostile"
	"cortexfs.org/tests/internal/world"
)

// switches are the names of all checks in the sources that can be switched off.
func switches(t *testing.T) (names []string) {
	t.Helper()
	called := regexp.MustCompile(`fault\.Off\("([^"]+)"\)|^\t"(sandbox:[a-z]+)":`)
	for _, module := range []string{"ctx", "ctxd", "libctx"} {
		err := filepath.WalkDir("../../"+module, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				for _, m := range called.FindAllStringSubmatch(line, -1) {
					names = append(names, m[1]+m[2])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestNoSwitches: a plain ctxd has no check that can be switched off, the one that
// is built for that has all of them, and each is the one that some attack is about.
func TestNoSwitches(t *testing.T) {
	t.Parallel()
	names := switches(t)
	if len(names) < 12 {
		t.Fatalf("switches %v", names)
	}
	read := func(dir string) []byte {
		text, err := os.ReadFile(dir + "/ctxd")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	plain, faulty := read(world.Bin(t)), read(hostile.Faulty(t))
	var tests string
	for _, pattern := range []string{"../*/*_test.go", "uids/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests += string(text)
		}
	}
	for _, name := range names {
		if bytes.Contains(plain, []byte(name)) {
			t.Errorf("the plain build has %s", name)
		}
		if !bytes.Contains(faulty, []byte(name)) && name != "inert:text" {
			t.Errorf("the build with faults has no %s", name)
		}
		if !regexp.MustCompile(`["+,]` + regexp.QuoteMeta(name) + `["+,]`).MatchString(tests) {
			t.Errorf("no attack is about %s", name)
		}
	}
}
