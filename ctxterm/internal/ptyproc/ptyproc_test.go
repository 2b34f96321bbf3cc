package ptyproc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/termwire"
)

func start(t *testing.T, argv ...string) *Proc {
	t.Helper()
	p, err := Start(Config{Argv: argv, Env: []string{"PATH=/usr/bin:/bin", "TERM=xterm"}, Dir: "/", Size: termwire.Size{Cols: 100, Rows: 30}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// outcome runs a program to its end.
func outcome(t *testing.T, argv ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	status, err := start(t, argv...).Run(&out)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), status
}

func TestProgramHasATerminal(t *testing.T) {
	for script, want := range map[string]string{
		`test -t 0 && test -t 1 && test -t 2 && echo yes`: "yes\n",
		`stty size`:                            "30 100\n",
		`echo $TERM`:                           "xterm\n",
		`pwd`:                                  "/\n",
		`sh -c 'echo own' </dev/tty >/dev/tty`: "own\n",
	} {
		if got, status := outcome(t, "sh", "-c", script); got != want || status != 0 {
			t.Errorf("%s: %q, status %d", script, got, status)
		}
	}
}

func TestStatus(t *testing.T) {
	for script, want := range map[string]int{
		"true": 0, "exit 3": 3, "exit 255": 255, "kill -TERM $$": 143, "kill -KILL $$": 137, "kill -INT $$": 130,
	} {
		if _, status := outcome(t, "sh", "-c", script); status != want {
			t.Errorf("%s: status %d, not %d", script, status, want)
		}
	}
}

func TestNoOutputIsLost(t *testing.T) {
	got, _ := outcome(t, "sh", "-c", "seq 1 50000")
	if n := strings.Count(got, "\n"); n != 50000 || !strings.HasSuffix(got, "\n50000\n") {
		t.Errorf("%d lines", n)
	}
}

// A left-behind process that never stops talking is cut off.
func TestLeftBehindTalking(t *testing.T) {
	var out bytes.Buffer
	p := start(t, "sh", "-c", `trap "" HUP; yes left & exit 5`)
	status, err := p.Run(&out)
	if err != nil || status != 5 {
		t.Errorf("%d, %v", status, err)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/plain", []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/odd", []byte("odd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]errdefs.Kind{
		"no-such-program": errdefs.NotFound, dir + "/missing": errdefs.NotFound,
		dir + "/plain": errdefs.Denied, dir + "/odd": errdefs.Denied, dir: errdefs.Denied,
	} {
		p, err := Start(Config{Argv: []string{program}, Size: termwire.DefaultSize})
		if p != nil || !errdefs.Is(err, want) || !strings.HasPrefix(err.Error(), program+": ") {
			t.Errorf("%s: %v", program, err)
		}
	}
	if _, err := Start(Config{}); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("nothing: %v", err)
	}
}

func TestFeed(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a\nb\n": "a\nb\n", "a\nb": "a\nb", "ü\n": "ü\n",
	} {
		p := start(t, "sh", "-c", "stty -echo; echo ready; cat")
		out := &until{mark: "ready\r\n", reached: make(chan struct{})}
		fed := make(chan error, 1)
		go func() { <-out.reached; fed <- p.Feed(strings.NewReader(in)) }()
		status, err := p.Run(out)
		if err != nil || status != 0 {
			t.Fatalf("%d, %v", status, err)
		}
		if err := <-fed; err != nil {
			t.Error(err)
		}
		if got := strings.ReplaceAll(out.String(), "\r\n", "\n"); got != "ready\n"+want {
			t.Errorf("typed %q, got %q", in, got)
		}
	}
}

// until tells when its mark has been written.
type until struct {
	seen    strings.Builder
	mark    string
	reached chan struct{}
}

func (u *until) Write(b []byte) (int, error) {
	u.seen.Write(b)
	if u.mark != "" && strings.Contains(u.String(), u.mark) {
		u.mark = ""
		close(u.reached)
	}
	return len(b), nil
}

func (u *until) String() string { return u.seen.String() }

func TestResize(t *testing.T) {
	p := start(t, "sh", "-c", `trap 'stty size; exit' WINCH; echo ready; while :; do read x; done`)
	out := &until{mark: "ready", reached: make(chan struct{})}
	go func() {
		<-out.reached
		if err := p.Resize(termwire.Size{Cols: 132, Rows: 43}); err != nil {
			t.Error(err)
		}
	}()
	if _, err := p.Run(out); err != nil || !strings.Contains(out.String(), "43 132") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestSignalGoesToTheGroup(t *testing.T) {
	p := start(t, "sh", "-c", "echo ready; sleep 100; echo not reached")
	out := &until{mark: "ready", reached: make(chan struct{})}
	go func() { <-out.reached; p.Signal(syscall.SIGTERM) }()
	if status, err := p.Run(out); err != nil || status != 143 {
		t.Errorf("%d, %v", status, err)
	}
}

func TestCloseHangsUp(t *testing.T) {
	// Whoever runs the test may ignore SIGHUP (nohup does), which is inherited.
	p := start(t, "env", "--default-signal=HUP", "sh", "-c", "echo ready; sleep 100")
	out := &until{mark: "ready", reached: make(chan struct{})}
	go func() { <-out.reached; p.Close() }()
	if status, err := p.Run(out); err != nil || status != 128+int(syscall.SIGHUP) {
		t.Errorf("%d, %v", status, err)
	}
}

func TestOutputThatFails(t *testing.T) {
	p := start(t, "yes")
	broken := errors.New("broken")
	status, err := p.Run(failing{broken})
	if err != broken || status < 128 && status != 1 { // hung up, or told that the terminal is gone
		t.Errorf("%d, %v", status, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// A process that stays on the terminal, deaf to its end, holds Run up for a
// moment only. It ends with the pipe whose writing end the test holds.
func TestLeftBehind(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "sh", "-c", `trap "" HUP; cat "$0" & echo left; exit 4`, fifo)
	hold, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	var out bytes.Buffer
	status, err := p.Run(&out)
	if err != nil || status != 4 || !strings.Contains(out.String(), "left") {
		t.Errorf("%d, %v: %q", status, err, &out)
	}
}
