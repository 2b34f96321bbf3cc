package workspace

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumented: the table of the reference is the list.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| kind | names |")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
	}
	want := Usual()
	slices.Sort(told)
	slices.Sort(want)
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	for _, name := range append(strings.Fields(watched), strings.Fields(watchedEndings)...) {
		if !strings.Contains(strings.ToLower(string(text)), name+"`") {
			t.Errorf("%s is not documented", name)
		}
	}
}
