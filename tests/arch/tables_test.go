package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tables are made by scripts/models of scripts/models.txt.
var tables = []string{"libctx/price/table.txt", "libctx/provider/limits.txt"}

// modelScript is a copy of the script beside this data, and the directory it
// works in.
func modelScript(t *testing.T, data string) (dir string, cmd *exec.Cmd) {
	t.Helper()
	dir = t.TempDir()
	script, err := os.ReadFile(filepath.Join(root, "scripts/models"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"scripts/models": string(script), "scripts/models.txt": data,
		tables[0]: "before\n", tables[1]: "before\n",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, exec.Command("bash", filepath.Join(dir, "scripts/models"))
}

// The tables of the programs are what the data says.
func TestModelTables(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "scripts/models.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir, cmd := modelScript(t, string(data))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s, %v", out, err)
	}
	for _, path := range tables {
		want, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what scripts/models makes of scripts/models.txt:\n%s, not\n%s", path, got, want)
		}
	}
}

// Prices move by six places exactly; what is wrong changes nothing.
func TestModelScript(t *testing.T) {
	const head = "# as of 2031-02-03\n"
	dir, cmd := modelScript(t, head+"a m 5 1 0.000001 - 123456.25\na n - 0 0 0 0.10\nb m 4294967295 - - - -\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	for path, want := range map[string][]string{
		tables[0]: {"as of 2031-02-03", "a/m 1000000 1 - 123456250000", "a/n 0 0 0 100000"},
		tables[1]: {"as of 2031-02-03", "a m 5", "b m 4294967295"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(string(text)), " ") + " "
		for _, w := range want {
			if !strings.Contains(words, w+" ") && !strings.Contains(words, w+".") {
				t.Errorf("%s has no %q: %s", path, w, text)
			}
		}
		if n := strings.Count(string(text), "\n") - strings.Count("\n"+string(text), "\n#"); n != 2 {
			t.Errorf("%s has %d lines: %s", path, n, text)
		}
	}
	for _, bad := range []string{
		"a m 5 1 1 1\n", "a m 5 1 1 1 1 1\n", "a m 0 1 1 1 1\n", "a m 4294967296 1 1 1 1\n", "a m 1e3 1 1 1 1\n", "a m 5 1,5 1 1 1\n", "a m 5 -1 1 1 1\n",
		"a m 5 .5 1 1 1\n", "a m 5 01 1 1 1\n", "a m 5 0.0000001 1 1 1\n", "a m 5 1 1 1 -\n", "a m 5 - 1 1 1\n", "a m 5 1 1 1 1\na m 6 1 1 1 1\n", "\n",
	} {
		dir, cmd := modelScript(t, head+bad)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "line ") {
			t.Errorf("%q: %s, %v", bad, out, err)
		}
		for _, path := range tables {
			if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(text) != "before\n" {
				t.Errorf("%q left %s, %v", bad, text, err)
			}
		}
	}
	if _, cmd := modelScript(t, "a m 5 1 1 1 1\n"); cmd.Run() == nil {
		t.Error("tables without a date were made")
	}
}
