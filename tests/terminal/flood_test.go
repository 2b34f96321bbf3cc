package terminal

import (
	"bytes"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/tests/internal/world"
	"golang.org/x/sys/unix"
)

// looker reads all that a terminal shows, keeping the last line.
type looker struct {
	c    net.Conn
	last chan string
}

func (l *lab) look(t *testing.T, r *room) *looker {
	t.Helper()
	c, err := net.Dial("unix", r.socket)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, `{"op":"watch"}`+"\n")
	must(t, err)
	k := &looker{c, make(chan string, 1)}
	hello := make([]byte, 5)
	_, err = io.ReadFull(c, hello)
	must(t, err)
	go func() {
		var tail []byte
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			tail = append(tail, buf[:n]...)
			tail = append([]byte{}, tail[max(0, len(tail)-64):]...)
			if err != nil {
				tail = bytes.TrimSpace(tail)
				k.last <- string(tail[bytes.LastIndexByte(tail, '\n')+1:])
				return
			}
		}
	}()
	return k
}

// TestCrowd: 200 look on, one of them is stopped, and a program goes on as if there
// were none.
func TestCrowd(t *testing.T) {
	t.Parallel()
	l := newOwn(t)
	r := l.start(t, "default")
	s := r.join(80, 24)
	stopped := r.pipe()
	connected(s, stopped)
	must(t, stopped.cmd.Process.Signal(unix.SIGSTOP))
	drawn := r.client("watch", 60, 20)
	drawn.See(prompt)
	var all []*looker
	for range 198 {
		all = append(all, l.look(t, r))
	}
	s.Type("bash -c 'yes 0123456789abcdef | head -c 12000000; touch printed'" + enter)
	l.AwaitExists(l.Workspace + "/printed")
	ready(s)
	s.Type("exit 5" + enter)
	if code := s.Exit(); code != 5 {
		t.Errorf("exit code %d", code)
	}
	for i, k := range all {
		select {
		case last := <-k.last:
			if last != `{"type":"exit","code":5}` {
				t.Fatalf("watcher %d: at last %q", i, last)
			}
		case <-time.After(world.Patience):
			t.Fatalf("watcher %d does not end", i)
		}
	}
	if code := drawn.Exit(); code != 0 {
		t.Errorf("a watcher with a picture: exit code %d", code)
	}
	drawn.See("exit 5")
	must(t, stopped.cmd.Process.Signal(unix.SIGCONT))
	<-stopped.over
	r.over("exited")
}

// TestFlat: 100 MB that nobody reads go by, and the memory stays as it was.
func TestFlat(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	r := l.start(t, "default")
	s := r.join(80, 24)
	stopped := r.pipe()
	connected(s, stopped)
	must(t, stopped.cmd.Process.Signal(unix.SIGSTOP))
	s.Type("bash -c 'stty -echo; read -r x; yes \"$(printf \"\\033[3%%dmcolours \" 1 2 3 4 5 6 7)\" | head -c 100000000; touch printed'" + enter)
	s.Wrote("yes")
	s.Type(enter + leave)
	s.Exit()
	l.AwaitExists(l.Workspace + "/printed")
	status, err := os.ReadFile("/proc/" + strconv.Itoa(l.inside(t, "ctxterm")) + "/status")
	must(t, err)
	peak := 0
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			peak, err = strconv.Atoi(f[1])
			must(t, err)
		}
	}
	if peak == 0 || peak > 64<<10 {
		t.Errorf("ctxterm had %d KiB", peak)
	}
	s = r.attach(80, 24)
	s.See("colours")
	ready(s)
	detach(t, s)
	_ = stopped.cmd.Process.Kill()
}
