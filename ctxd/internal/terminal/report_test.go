package terminal

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	resource "cortexfs.org/libctx/terminal"
)

func TestTell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "report.sock")
	sent := resource.Report{Ready: true, PID: 7}
	if err := Tell(path, sent); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("nobody there: %v", err)
	}
	// A directory that is open has a short path.
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	t.Chdir(dir)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: "report.sock"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Tell(path, sent); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := resource.ParseReport(b[:n]); err != nil || got != sent {
		t.Errorf("%+v, %v", got, err)
	}
	c.Close()
	if err := Tell(path, sent); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("gone again: %v", err)
	}
}
