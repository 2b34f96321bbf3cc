package notify

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"cortexfs.org/libctx/log"
)

const patience = time.Minute

// listen is a supervisor's end.
func listen(t *testing.T) (address string, next func() string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "n")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return address, func() string {
		t.Helper()
		buf := make([]byte, 100)
		c.SetReadDeadline(time.Now().Add(patience))
		n, err := c.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestLife(t *testing.T) {
	address, next := listen(t)
	s := New(address, 20*time.Millisecond, log.Discard())
	s.Ready()
	if got := next(); got != "READY=1" {
		t.Errorf("first it says %q", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := s.Watch(ctx, func(context.Context) {})
	for range 3 {
		if got := next(); got != "WATCHDOG=1" {
			t.Errorf("then %q", got)
		}
	}
	cancel()
	for got := next(); got != "STOPPING=1"; got = next() {
		if got != "WATCHDOG=1" {
			t.Errorf("at the end %q", got)
		}
	}
	stop()
}

// A daemon that is stuck says nothing more.
func TestStuck(t *testing.T) {
	address, next := listen(t)
	s := New(address, 20*time.Millisecond, log.Discard())
	stuck, free := make(chan struct{}), make(chan struct{})
	asked := 0
	stop := s.Watch(context.Background(), func(context.Context) {
		if asked++; asked == 2 {
			close(stuck)
			<-free
		}
	})
	if got := next(); got != "WATCHDOG=1" {
		t.Errorf("%q", got)
	}
	<-stuck
	s.say("between")
	if got := next(); got != "between" {
		t.Errorf("while it was stuck: %q", got)
	}
	close(free)
	if got := next(); got != "WATCHDOG=1" {
		t.Errorf("after that: %q", got)
	}
	stop()
}

func TestNobody(t *testing.T) {
	s := New("", time.Millisecond, log.Discard())
	s.Ready()
	s.Watch(context.Background(), func(context.Context) { t.Error("somebody asked") })()
	New("/nowhere/at/all", 0, log.Discard()).Ready() // a warning, no more
	New("@cortexfs-nobody-listens", 0, log.Discard()).Ready()
}
