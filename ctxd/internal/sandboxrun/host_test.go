package sandboxrun

import (
	"os"
	"path/filepath"
	"testing"
)

// TestForEverybody: a directory that some agent could not look into is not shown
// to any; a bind of it would fail the start of every sandbox.
func TestForEverybody(t *testing.T) {
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "skills")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		above, dir os.FileMode
		want       bool
	}{
		{0o755, 0o755, true}, {0o711, 0o705, true},
		{0o700, 0o755, false}, {0o754, 0o755, false}, {0o755, 0o700, false}, {0o755, 0o751, false}, {0o755, 0o754, false},
	} {
		for path, mode := range map[string]os.FileMode{above: c.above, dir: c.dir} {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := forEverybody(dir); got != c.want {
			t.Errorf("%04o below %04o: %v", c.dir, c.above, got)
		}
	}
	if err := os.Chmod(above, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(above, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(above, "none")} {
		if forEverybody(path) {
			t.Errorf("%s is shown", path)
		}
	}
}
