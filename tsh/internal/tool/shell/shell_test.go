package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

var environ = []string{"PATH=/usr/bin:/bin", "ONLY=this"}

func execute(t testing.TB, ctx context.Context, args map[string]any) (*tool.Output, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	out := new(tool.Output)
	err = Exec(Config{Environ: environ}).Call(ctx, raw, out)
	if n := len(out.Content()); n > libctx.MaxToolResult {
		t.Errorf("%d bytes of content", n)
	}
	if !utf8.ValidString(out.Content()) {
		t.Error("content is not valid text")
	}
	return out, err
}

func cmd(t testing.TB, line string) (*tool.Output, error) {
	return execute(t, t.Context(), map[string]any{"cmd": line})
}

func TestExec(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, c := range []struct {
		line, text, note string
		kind             errdefs.Kind
		exit             int
	}{
		{"echo hi", "hi\n", "[exit 0, ", "", 0},
		{"true", "", "[exit 0, ", "", 0},
		{"echo out; echo err >&2; echo out", "out\nerr\nout\n", "[exit 0, ", "", 0},
		{"echo no; exit 3", "no\n", "[exit 3, ", errdefs.IO, 3},
		{"pwd", dir + "\n", "[exit 0, ", "", 0},
		{"echo $ONLY-$HOME-$CTX_TOOL_MODE", "this--\n", "[exit 0, ", "", 0},
		{"cat; echo end of input", "end of input\n", "[exit 0, ", "", 0},
		{"read x || echo nothing", "nothing\n", "[exit 0, ", "", 0},
		{"test -t 0 || test -t 1 || test -t 2 || echo no terminal", "no terminal\n", "[exit 0, ", "", 0},
		{"(exec 2>/dev/null; cat </dev/tty) || echo no tty", "no tty\n", "[exit 0, ", "", 0},
		{"kill -KILL $$", "", "[killed by SIGKILL, exit 137, ", errdefs.IO, 137},
		{"kill -SEGV $$", "", "[killed by SIGSEGV, exit 139, ", errdefs.IO, 139},
		{"no-such-program-here", "", "[exit 127, ", errdefs.IO, 127},
		{`printf 'a\377b\000c'`, "a\ufffdb\u2400c", "[exit 0, ", "", 0},
		{"exec >&- 2>&-; exit 4", "", "[exit 4, ", errdefs.IO, 4},
		{"'unclosed", "", "[exit 2, ", errdefs.IO, 2},
	} {
		out, err := cmd(t, c.line)
		if text := out.Text(); text != c.text && !(c.text == "" && c.exit >= 2 && c.exit < 128) {
			t.Errorf("%s: %q", c.line, text)
		}
		if len(out.Notes()) != 1 || !strings.HasPrefix(out.Notes()[0], c.note) {
			t.Errorf("%s: notes %q", c.line, out.Notes())
		}
		if errdefs.KindOf(err) != c.kind || out.ExitCode() == nil || *out.ExitCode() != c.exit {
			t.Errorf("%s: exit %v, %v", c.line, out.ExitCode(), err)
		}
	}
}

func TestExecRefusesArguments(t *testing.T) {
	for _, args := range []map[string]any{
		{}, {"cmd": ""}, {"cmd": nil}, {"cmd": "a\x00b"}, {"cmd": "true", "timeout_ms": 0}, {"cmd": "true", "timeout_ms": -1},
		{"cmd": "true", "timeout_ms": 3_600_001}, {"cmd": "true", "timeout_ms": 1.5}, {"cmd": "true", "cwd": "/"}, {"args": []string{}},
		{"cmd": "# " + strings.Repeat("x", 200<<10)},
	} {
		if out, err := execute(t, t.Context(), args); !errdefs.Is(err, errdefs.Invalid) || out.Content() != "" {
			t.Errorf("%.80v: %q, %v", args, out.Content(), err)
		}
	}
	if out, err := execute(t, t.Context(), map[string]any{"args": []string{"echo", "two", "words"}}); err != nil || out.Text() != "two words\n" {
		t.Errorf("%q, %v", out.Text(), err)
	}
}

func TestLongOutputKeepsHeadAndTail(t *testing.T) {
	out, err := cmd(t, "echo the head; yes é | head -c 3000000; echo; echo the tail")
	if err != nil || !out.IsTruncated() || !strings.HasPrefix(out.Text(), "the head\n") || !strings.HasSuffix(out.Text(), "the tail\n") {
		t.Errorf("%.40q… %v", out.Text(), err)
	}
	if !strings.Contains(out.Text(), " bytes left out …]") {
		t.Error("the cut is not stated")
	}
	out, err = cmd(t, "head -c 200000 /dev/zero")
	if err != nil || !out.IsTruncated() || out.Len() > libctx.MaxToolResult {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

func TestOutputWithoutEnd(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	out, err := execute(t, t.Context(), map[string]any{"cmd": "yes", "timeout_ms": 300})
	runtime.ReadMemStats(&after)
	if !errdefs.Is(err, errdefs.Timeout) || !out.IsTruncated() || !strings.HasPrefix(out.Notes()[0], "[timed out after 300ms and was killed, exit 143") {
		t.Errorf("%q %v", out.Notes(), err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// gone waits until a process has ended, through a pidfd.
func gone(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000)
	if (err != nil || n != 1) && alive(pid) {
		t.Errorf("process %d is still there", pid)
		unix.Kill(pid, unix.SIGKILL)
	}
}

func lastPid(t *testing.T, text string) int {
	t.Helper()
	fields := strings.Fields(text)
	if len(fields) == 0 {
		t.Fatal("no process id in the output")
	}
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestBackgroundProcessDoesNotHoldTheCall(t *testing.T) {
	begin := time.Now()
	out, err := cmd(t, "sleep 100 & echo $!")
	if err != nil || len(out.Notes()) != 2 || !strings.Contains(out.Notes()[1], "background") {
		t.Errorf("%q, %v", out.Content(), err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	gone(t, lastPid(t, out.Text()))

	// One that has no hold on the output goes too.
	out, err = cmd(t, "sleep 100 >/dev/null 2>&1 & echo $!")
	if err != nil || len(out.Notes()) != 1 {
		t.Errorf("%q, %v", out.Content(), err)
	}
	gone(t, lastPid(t, out.Text()))

	// A daemon in a session of its own does not hold the call either; outside a
	// sandbox nothing but its own end ends it.
	begin = time.Now()
	out, err = cmd(t, "setsid sh -c 'echo $$; exec sleep 100' & wait_for=1; sleep 0.2; echo done")
	if err != nil || len(out.Notes()) != 2 {
		t.Errorf("%q, %v", out.Content(), err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	unix.Kill(lastPid(t, strings.TrimSuffix(out.Text(), "done\n")), unix.SIGKILL)

	// Its late output, within the time of grace, is kept.
	out, err = cmd(t, "(sleep 0.1; echo late) & echo early")
	if err != nil || out.Text() != "early\nlate\n" || len(out.Notes()) != 1 {
		t.Errorf("%q, %v", out.Content(), err)
	}
}

func TestTimeoutKillsTheWholeGroup(t *testing.T) {
	// Both ignore SIGTERM.
	begin := time.Now()
	out, err := execute(t, t.Context(), map[string]any{
		"cmd": "trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait; while :; do sleep 1; done", "timeout_ms": 300,
	})
	if !errdefs.Is(err, errdefs.Timeout) || *out.ExitCode() != 137 {
		t.Errorf("%q, %v", out.Content(), err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	gone(t, lastPid(t, out.Text()))
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	dir := t.TempDir()
	fifo := filepath.Join(dir, "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		os.ReadFile(fifo) // returns when the command has written
		cancel(errors.New("terminated signal received"))
	}()
	out, err := execute(t, ctx, map[string]any{"cmd": "echo partial; sleep 100 & echo $!; echo >" + fifo + "; wait"})
	if !errdefs.Is(err, errdefs.Cancelled) || !strings.HasPrefix(out.Text(), "partial\n") || !strings.HasPrefix(out.Notes()[0], "[cancelled and killed (terminated signal received), exit ") {
		t.Errorf("%q, %v", out.Content(), err)
	}
	gone(t, lastPid(t, out.Text()))
}

func TestDescriptors(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private")
	f, err := os.Create(private)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := cmd(t, "ls -l /proc/self/fd")
	if err != nil || strings.Contains(out.Text(), private) {
		t.Errorf("%q, %v", out.Text(), err)
	}
}

func TestCurrentDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd(t, "echo works"); err != nil || !strings.HasSuffix(out.Text(), "works\n") {
		t.Errorf("%q, %v", out.Text(), err)
	}
}

// TestLimit: the host's limit counts whatever the call asks for.
func TestLimit(t *testing.T) {
	for args, limit := range map[string]time.Duration{
		`{"cmd":"echo kept; sleep 100"}`:                      50 * time.Millisecond,
		`{"cmd":"echo kept; sleep 100","timeout_ms":3600000}`: 50 * time.Millisecond,
		`{"cmd":"echo kept; sleep 100","timeout_ms":50}`:      time.Hour,
	} {
		out := new(tool.Output)
		err := Exec(Config{Environ: environ, Limit: limit}).Call(t.Context(), jsontext.Value(args), out)
		if !errdefs.Is(err, errdefs.Timeout) || !strings.HasPrefix(out.Content(), "kept\n[timed out after 50ms") {
			t.Errorf("%s: %v, %q", args, err, out.Content())
		}
	}
}
