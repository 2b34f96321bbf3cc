// Command reference makes manual pages and completions of the suite's programs,
// from their own help and the texts in docs.
//
//	reference -programs bin -into dist/reference -version 0.1.0 -day 2025-12-01
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"cortexfs.org/packaging/internal/completion"
	"cortexfs.org/packaging/internal/manual"
	"cortexfs.org/packaging/internal/program"
)

func main() {
	top := flag.String("top", ".", "the top `DIR` of the sources")
	programs := flag.String("programs", "bin", "`DIR` of the built programs")
	into := flag.String("into", "", "`DIR` to write to; it gets man and completions")
	version := flag.String("version", "", "`VERSION` that the pages name")
	day := flag.String("day", "", "the `DAY` that the pages name")
	flag.Parse()
	if flag.NArg() != 0 || *into == "" || *version == "" || *day == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(*top, *programs, *into, *version, *day); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(top, programs, into, version, day string) error {
	suite, err := program.Suite(programs)
	if err != nil {
		return err
	}
	book, err := manual.Read(top, suite)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for _, p := range book.Pages {
		page, err := book.Render(p, version, day)
		if err != nil {
			return err
		}
		files["man/man"+p.Section+"/"+p.File()] = page
	}
	if forgotten := book.Unused(); len(forgotten) > 0 {
		return fmt.Errorf("no page of docs/man explains %q", forgotten)
	}
	scripts, err := completion.Scripts(suite)
	if err != nil {
		return err
	}
	for name, text := range scripts {
		files["completions/"+name] = []byte(text)
	}
	for name, text := range files {
		path := filepath.Join(into, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
