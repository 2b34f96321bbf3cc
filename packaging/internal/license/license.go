// Package license writes the copyright file of a package: ours, and those of the
// modules that are linked into its programs, whose licenses want to be told.
package license

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

const apache = `Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0
On Debian systems its full text is in /usr/share/common-licenses/Apache-2.0.`

const ours = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: CortexFS
Source: https://cortexfs.org

Files: *
Copyright: 2025 the CortexFS authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, can be
 found in the file /usr/share/common-licenses/Apache-2.0.
`

// Copyright is the text of the file for these programs, which may be none. The
// modules are looked up in the cache of the Go command, a folder.
func Copyright(programs []string, cache string) (string, error) {
	modules := map[string]string{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return "", err
		}
		for _, m := range info.Deps {
			if !strings.HasPrefix(m.Path, "cortexfs.org/") {
				modules[m.Path] = m.Version
			}
		}
	}
	var b strings.Builder
	b.WriteString(ours)
	var paths []string
	for path := range modules {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		text, err := find(filepath.Join(cache, escape(path)+"@"+escape(modules[path])))
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(&b, "\nFiles: %s\nCopyright: see below\nLicense: %s\n%s", path, strings.ReplaceAll(path, "/", "-"), indent(text))
	}
	return b.String(), nil
}

// find reads all files of a module that state its license.
func find(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var all []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE"}, func(s string) bool { return strings.HasPrefix(name, s) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		if bytes.Contains(text, []byte("Apache License")) && bytes.Contains(text, []byte("Version 2.0, January 2004")) {
			text = []byte(apache)
		}
		all = append(all, strings.TrimSpace(string(text)))
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s states no license", dir)
	}
	return strings.Join(all, "\n\n"), nil
}

// indent makes a text a field's: a blank in front of each line, a dot in empty
// ones.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			line = "."
		}
		b.WriteString(" " + line + "\n")
	}
	return b.String()
}

// escape is the cache's spelling of a path: capitals are a mark and a small letter.
func escape(path string) string {
	var b strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			b.WriteRune('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
