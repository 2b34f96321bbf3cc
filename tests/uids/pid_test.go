package uids

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPIDInTheOwnersDirectory: root's daemon, which has no right to write into a
// directory of another user's, says there as that user which process serves.
func TestPIDInTheOwnersDirectory(t *testing.T) {
	root, a, _ := system(t)
	control := root.Root + "/agent/alice.d"
	if out, err := exec.Command("chown", "-R", "60001:60001", control).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	if out := a.MustCtx("agent", "send", "alice", "say mine"); out != "mine\n" {
		t.Errorf("%q", out)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(root.Read(control + "/pid")))
	if err != nil {
		t.Fatal(err)
	}
	if line := root.Read("/proc/" + strconv.Itoa(pid) + "/cmdline"); !strings.Contains(line, "\x00agent\x00") {
		t.Errorf("process %d is %q", pid, line)
	}
	var st unix.Stat_t
	if err := unix.Lstat(control+"/pid", &st); err != nil || st.Uid != alice {
		t.Errorf("the file belongs to %d, %v", st.Uid, err)
	}
	root.MustCtx("agent", "stop", "alice")
	if text, err := os.ReadFile(control + "/pid"); err != nil || len(text) != 0 {
		t.Errorf("afterwards it says %q, %v", text, err)
	}
}
