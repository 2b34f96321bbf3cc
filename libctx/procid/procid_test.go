package procid

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx/errdefs"
)

// sleeper starts a process that lives until it is killed. The caller waits.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestOf(t *testing.T) {
	self, err := Of(os.Getpid())
	if err != nil || self.PID != os.Getpid() || self.Start == 0 || !self.Alive() {
		t.Fatalf("%+v %v", self, err)
	}
	if parent, err := Parent(os.Getpid()); err != nil || parent != os.Getppid() {
		t.Errorf("parent %d %v", parent, err)
	}
	other := self
	other.Start++
	if other.Alive() {
		t.Error("another start time is another process")
	}
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := Of(pid); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("Of(%d): %v", pid, err)
		}
		if _, err := Children(pid); !errdefs.Is(err, errdefs.NotFound) {
			t.Errorf("Children(%d): %v", pid, err)
		}
	}
}

func TestChildren(t *testing.T) {
	var want []int
	for range 3 {
		want = append(want, sleeper(t).Process.Pid)
	}
	for name, list := range map[string]func(int) ([]int, error){"kernel's list": Children, "scan": scan} {
		got, err := list(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range want {
			found := false
			for _, g := range got {
				found = found || g == pid
			}
			if !found {
				t.Errorf("%s: %v lacks %d", name, got, pid)
			}
		}
	}
}

func TestHandle(t *testing.T) {
	cmd := sleeper(t)
	h, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.PID() != cmd.Process.Pid || h.Ended() {
		t.Errorf("pid %d, ended %v", h.PID(), h.Ended())
	}
	id, _ := Of(cmd.Process.Pid)

	// A wait that is given up, twice, and then one that is not.
	for range 2 {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		if err := h.Wait(ctx); !errors.Is(err, why) {
			t.Errorf("given up: %v", err)
		}
	}
	over := make(chan error, 1)
	go func() { over <- h.Wait(context.Background()) }()
	if err := h.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	// It is a zombie: ended, but still to be collected.
	if !h.Ended() || id.Alive() {
		t.Errorf("ended %v, alive %v", h.Ended(), id.Alive())
	}
	if _, err := Of(cmd.Process.Pid); err != nil {
		t.Errorf("a zombie is gone: %v", err)
	}
	h.Reap()
	if _, err := Of(cmd.Process.Pid); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("after Reap: %v", err)
	}
	if err := h.Signal(syscall.SIGTERM); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("signal to nobody: %v", err)
	}
	if _, err := Open(cmd.Process.Pid); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("open nobody: %v", err)
	}
}

func TestReapTakesNobodyElse(t *testing.T) {
	one, two := sleeper(t), sleeper(t)
	h, err := Open(one.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	two.Process.Kill()
	h.Reap() // the first lives, the second is a zombie: neither is collected
	if err := two.Wait(); two.ProcessState == nil {
		t.Errorf("the exit status of another child was taken: %v", err)
	}
	if h.Ended() {
		t.Error("ended")
	}
}

func TestParse(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 4242 99"
	for _, c := range []struct {
		text   string
		parent int
		start  uint64
		ok     bool
	}{
		{"7 (a) S 3" + rest, 3, 4242, true},
		{"7 (a) b) R (c) S 3" + rest, 3, 4242, true},
		{"7 (\n) Z 0" + rest, 0, 4242, true},
		{"7 (a) S 3 1 2", 0, 0, false},
		{"7 (a S 3" + rest, 0, 0, false},
		{"7 (a) SS 3" + rest, 0, 0, false},
		{"7 (a) S x" + rest, 0, 0, false},
		{"7 (a) S -3" + rest, 0, 0, false},
		{"", 0, 0, false},
	} {
		st, ok := parse([]byte(c.text))
		if ok != c.ok || ok && (st.parent != c.parent || st.start != c.start) {
			t.Errorf("%q: %+v %v", c.text, st, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("7 (a) b) S 3 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 4242 99"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if st, ok := parse(text); ok && (st.parent < 0 || st.state < 'A') {
			t.Errorf("%+v", st)
		}
	})
}
