// Package notify tells the supervisor of a daemon how it is: that it is ready,
// that it is alive, that it is ending (systemd's protocol of datagrams,
// sd_notify(3)). Without a supervisor it does nothing.
package notify

import (
	"context"
	"net"
	"time"

	"cortexfs.org/libctx/log"
)

// Supervisor is who wants to hear. Make it with New.
type Supervisor struct {
	address  string
	watchdog time.Duration
	log      *log.Logger
}

// New is the supervisor that listens at an address, "" for none. It kills what it
// does not hear of for the time of the watchdog; 0: it does not.
func New(address string, watchdog time.Duration, l *log.Logger) *Supervisor {
	return &Supervisor{address, watchdog, l}
}

// Present reports whether there is a supervisor.
func (s *Supervisor) Present() bool { return s.address != "" }

// Ready says that the daemon serves.
func (s *Supervisor) Ready() { s.say("READY=1") }

// Watch says that the daemon is alive, twice in the time of the watchdog, each
// time after alive has returned: a daemon that is stuck has an alive that does
// not. When the context has ended it says that the daemon is ending. The result
// ends it, and waits for that, and ends the context that alive has; an alive that
// is stuck is not waited for.
func (s *Supervisor) Watch(ctx context.Context, alive func(context.Context)) (stop func()) {
	if !s.Present() {
		return func() {}
	}
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.watch(ctx, over, alive)
	}()
	return func() {
		end()
		<-ended
	}
}

func (s *Supervisor) watch(ctx, over context.Context, alive func(context.Context)) {
	beat, seen := make(<-chan time.Time), make(chan struct{}, 1)
	if s.watchdog > 0 {
		t := time.NewTicker(s.watchdog / 2)
		defer t.Stop()
		beat = t.C
	}
	for asked := false; ; {
		select {
		case <-beat:
			if !asked { // else the last question has no answer yet
				asked = true
				go func() {
					alive(over)
					seen <- struct{}{}
				}()
			}
		case <-seen:
			asked = false
			s.say("WATCHDOG=1")
		case <-ctx.Done():
			s.say("STOPPING=1")
			<-over.Done()
			return
		case <-over.Done():
			return
		}
	}
}

// say sends a state. That it could not be sent is logged: a supervisor acts on
// what it does not hear.
func (s *Supervisor) say(state string) {
	if !s.Present() {
		return
	}
	address := s.address
	if address[0] == '@' {
		address = "\x00" + address[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: address})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		s.log.Warn("supervisor", "state", state, "why", err.Error())
	}
}
