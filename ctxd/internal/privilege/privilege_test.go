package privilege

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// What is given up does not come back, so each test does it in a process of its
// own, which is this program once more.
func TestMain(m *testing.M) {
	part := map[string]func() error{"server": server, "nothing": nothing, "confine": confine}
	if len(os.Args) > 1 && part[os.Args[1]] != nil {
		if err := part[os.Args[1]](); err != nil {
			fmt.Println("error", errdefs.KindOf(err), err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process runs this program as a part and returns the lines it prints.
func process(t *testing.T, part string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{part}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		lines = append(lines, s.Text())
	}
	if len(lines) == 0 {
		t.Fatal("it said nothing")
	}
	return lines
}

func server() error  { return drop(Server...) }
func nothing() error { return drop() }

// drop drops in a process with many threads, then says what each of them has,
// and what a program has that it starts.
func drop(keep ...int) error {
	there, leave := make(chan bool), make(chan bool)
	for range 8 {
		go func() {
			runtime.LockOSThread()
			there <- true
			<-leave
		}()
	}
	for range 8 {
		<-there
	}
	defer close(leave)
	if err := Drop(keep...); err != nil {
		return err
	}
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil { // else the thread has ended
			fmt.Println("thread", rights(string(text)))
		}
	}
	text, err := exec.Command("/bin/cat", "/proc/self/status").Output()
	if err != nil {
		return err
	}
	fmt.Println("child", rights(string(text)))
	return nil
}

// rights are the lines of a status that tell of privileges, in one.
func rights(status string) string {
	var all []string
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if strings.HasPrefix(name, "Cap") || name == "NoNewPrivs" {
			all = append(all, name+"="+strings.TrimLeft(value, "0"))
		}
	}
	return strings.Join(all, " ")
}

// withC is whether this test is a program with cgo, as under the race detector.
func withC() bool {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPPID, 0, 0, 0)
	return errno == unix.ENOTSUP
}

func TestDrop(t *testing.T) {
	now, err := capabilities()
	if err != nil {
		t.Fatal(err)
	}
	for part, keep := range map[string][]int{"server": Server, "nothing": nil} {
		lines := process(t, part)
		if withC() {
			if !strings.HasPrefix(lines[0], "error internal ") {
				t.Errorf("with cgo: %s", lines[0])
			}
			continue
		}
		bounds := of(keep)
		if !now.effective.has(unix.CAP_SETPCAP) {
			bounds = bounding(t) // of no consequence
		}
		// What the program that it starts has is what uid 0 gives it, within bounds.
		want := func(held set) string {
			hex := func(s set) string { return strings.TrimLeft(fmt.Sprintf("%x", uint64(s)), "0") }
			return fmt.Sprintf("CapInh= CapPrm=%s CapEff=%[1]s CapBnd=%s CapAmb= NoNewPrivs=1", hex(held), hex(bounds))
		}
		threads := 0
		for _, line := range lines {
			what, got, _ := strings.Cut(line, " ")
			if expected := want(now.permitted & of(keep)); got != expected {
				t.Errorf("%s: a %s has %s, want %s", part, what, got, expected)
			}
			if what == "thread" {
				threads++
			}
		}
		if threads < 9 {
			t.Errorf("%s: %d threads", part, threads)
		}
	}
}

// bounding is the bounding set of this process.
func bounding(t *testing.T) (s set) {
	for c := 0; ; c++ {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		if held == 1 {
			s |= 1 << c
		}
	}
}

// confine confines a thread and says what it can do then.
func confine() error {
	runtime.LockOSThread()
	fmt.Println(reach(os.Args[2]))
	abstract, err := Confine()
	if err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	fmt.Println(abstract, reach(os.Args[2]), rights(string(status)))
	return nil
}

// reach is the error of a connection to an abstract socket.
func reach(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: name})
}

func TestConfine(t *testing.T) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	name := fmt.Sprintf("@cortexfs-test-%d", os.Getpid())
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		t.Fatal(err)
	}
	lines := process(t, "confine", name)
	want := "false <nil>"
	if scopes() {
		want = "true operation not permitted"
	}
	if lines[0] != "<nil>" || len(lines) != 2 || !strings.HasPrefix(lines[1], want+" ") || !strings.HasSuffix(lines[1], " NoNewPrivs=1") {
		t.Errorf("%q, want %s", lines, want)
	}
}

// scopes is whether this kernel's Landlock knows scopes: version 6 of its
// interface brought them.
func scopes() bool {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && version >= 6
}
