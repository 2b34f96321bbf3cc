package client

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// TestRefusalBeforeTheRequest: a daemon that refuses a peer says so and closes
// before it reads. The client hears the reason, not that writing failed.
func TestRefusalBeforeTheRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, `{"type":"error","code":"EACCES","message":"not yours"}`+"\n")
		c.Close()
	}()
	c, err := Connect(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-closed
	if _, _, err := c.Ask(&wire.Ping{}); !errdefs.Is(err, errdefs.Denied) || err.Error() != "not yours" {
		t.Errorf("got %v", err)
	}
	if _, _, err := c.Ask(&wire.Ping{}); !errdefs.Is(err, errdefs.Interrupted) {
		t.Errorf("after the end: %v", err)
	}
}
