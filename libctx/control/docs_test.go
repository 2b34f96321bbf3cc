package control

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The page for people names every control file, and the messages it shows are
// the ones that are given.
func TestReferencePage(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/control.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	agents, tools, ok := strings.Cut(page, "\n## Tools\n")
	if !ok {
		t.Fatal("no section about tools")
	}
	tools, models, ok := strings.Cut(tools, "\n## Models\n")
	if !ok {
		t.Fatal("no section about models")
	}
	for part, files := range map[string][]string{agents: AgentFiles(), tools: ToolFiles(), models: ModelFiles()} {
		for _, file := range files {
			if !strings.Contains(part, "\n| `"+file+"` |") {
				t.Errorf("%s has no row", file)
			}
		}
	}
	s, err := ParseSchema([]byte(fsRead))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{CheckAgent("perm", []byte("rwz\n")), s.Validate(jsontext.Value(`{"path":1}`))} {
		if !strings.Contains(page, "\n"+err.Error()+"\n") {
			t.Errorf("the page does not show: %v", err)
		}
	}
	b, err = os.ReadFile("../../docs/reference/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	err = CheckAgent("policy", []byte("\nallow a_t tool:x read\n"))
	if !strings.Contains(string(b), "\n"+err.Error()+"\n") {
		t.Errorf("the page does not show: %v", err)
	}
}
