package e2e

import (
	"path/filepath"
	"strings"

	"cortexfs.org/tests/internal/world"
)

// marking is a command that leaves a mark of its own every time it runs. The mark
// is there as a whole or not at all, whenever its shell is killed.
func marking(job string) string { return "mktemp did-" + job + ".XXXXXX" }

// done looks at the marks: no job was done twice. It returns how many jobs were.
func done(w *world.World) int {
	w.T.Helper()
	marks, err := filepath.Glob(w.Workspace + "/did-*.*")
	if err != nil {
		w.T.Fatal(err)
	}
	times := map[string]int{}
	for _, path := range marks {
		job, _, _ := strings.Cut(filepath.Base(path), ".")
		times[job]++
	}
	for job, n := range times {
		if n > 1 {
			w.T.Errorf("%s ran %d times", job, n)
		}
	}
	return len(times)
}
