package unixsock

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
)

func TestListenFresh(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s", "0123456789abcdef.sock"} {
		path := filepath.Join(dir, name)
		l, err := ListenFresh(path, mine)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, l)
		if st, err := os.Lstat(path); err != nil || st.Mode() != os.ModeSocket|0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("beside it: %v", entries)
		}
		if c, err := Dial(context.Background(), path); err != nil {
			t.Error(err)
		} else {
			c.Close()
		}
		l.Close()
		// Whatever is there stays there.
		if _, err := ListenFresh(path, mine); !errdefs.Is(err, errdefs.Exists) {
			t.Errorf("over a dead socket: %v", err)
		}
		os.Remove(path)
	}
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenFresh(filepath.Join(dir, "link"), mine); !errdefs.Is(err, errdefs.Exists) {
		t.Errorf("over a dangling link: %v", err)
	}
	if _, err := ListenFresh(filepath.Join(dir, "none", "s"), mine); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("nowhere: %v", err)
	}
}
