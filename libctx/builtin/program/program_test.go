package program

import (
	"os"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

func TestFind(t *testing.T) {
	for _, name := range []libctx.Tool{"bash", "tmux", "zellij"} {
		path, err := Find(name)
		if len(Places(name)) == 0 || !strings.HasSuffix(Places(name)[0], "/"+string(name)) {
			t.Errorf("%s: %v", name, Places(name))
		}
		if err == nil {
			if st, err := os.Stat(path); err != nil || st.IsDir() {
				t.Errorf("%s: %v", path, err)
			}
		} else if !errdefs.Is(err, errdefs.Unavailable) || !strings.Contains(err.Error(), string(name)+" is not installed") {
			t.Error(err)
		}
	}
	for _, name := range []libctx.Tool{"fs.read", "sh", ""} {
		if _, err := Find(name); err == nil || Places(name) != nil {
			t.Errorf("%q is a program", name)
		}
	}
}

// PATH has no part in it.
func TestPATHIsNotAsked(t *testing.T) {
	before := map[libctx.Tool]string{}
	for _, name := range []libctx.Tool{"bash", "tmux", "zellij"} {
		before[name], _ = Find(name)
	}
	dir := t.TempDir()
	for name := range before {
		if err := os.WriteFile(dir+"/"+string(name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	for name, was := range before {
		if now, _ := Find(name); now != was {
			t.Errorf("%s: %s, then %s", name, was, now)
		}
	}
}
