// Ledgercheck reads session directories, without any code of the suite that
// writes them, and prints what in them can not be true.
//
//	go run ./cmd/ledgercheck [-open] [-told FILE]… [-marks FILE] DIR…
//
// A DIR is a session's directory or has sessions somewhere below it. It exits 1
// if there is a problem, 2 if something can not be read.
package main

import (
	"flag"
	"fmt"
	"os"

	"cortexfs.org/tests/internal/checker"
)

func main() {
	var o checker.Options
	flag.BoolVar(&o.Open, "open", false, "runs may be going on")
	flag.StringVar(&o.Marks, "marks", "", "the file that the tool mark appended to")
	flag.Func("told", "a file of what a client was told (again for more)", func(path string) error {
		o.Told = append(o.Told, path)
		return nil
	})
	flag.Parse()
	if o.Dirs = flag.Args(); len(o.Dirs) == 0 {
		flag.Usage()
		os.Exit(2)
	}
	r, err := checker.Check(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledgercheck:", err)
		os.Exit(2)
	}
	for _, p := range r.Problems {
		fmt.Println(p)
	}
	fmt.Println(r)
	if len(r.Problems) > 0 {
		os.Exit(1)
	}
}
