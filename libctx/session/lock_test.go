package session

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestCloseUnlocks: the session is free after Close even while another process
// has not yet let go of the lock's descriptor, as one that is just being started.
func TestCloseUnlocks(t *testing.T) {
	p := place(t)
	s, err := p.Open("default")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(s.locks.own.Fd())) // shares the lock, as a fork does
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := p.Open("default")
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	again.Close()
}
