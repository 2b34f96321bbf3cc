package sandboxrun

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
)

// sweep kills first processes of sandboxes whose bwrap is gone. There is a moment
// of a launch, between bwrap's arming of its parent-death signal and its word
// to its child to go on, in which the death of a launcher leaves that child
// waiting for ever. It executes nothing and holds little, but it stays. A first
// process whose bwrap lives belongs to somebody and is left alone.
func sweep() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // then there are no sandboxes either
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && bwrap(pid) {
			sweepOne(pid)
		}
	}
}

func sweepOne(pid int) {
	h, err := procid.Open(pid)
	if err != nil {
		return
	}
	defer h.Close()
	parent, err := procid.Parent(pid)
	// Everything was asked about the process that the handle holds, if that one
	// has not ended meanwhile.
	if err == nil && ours(pid) && inner(pid) == "1" && !ours(parent) && !h.Ended() {
		h.Signal(syscall.SIGKILL) // one of another user stays: it is his to sweep
	}
}

func bwrap(pid int) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && string(comm) == "bwrap\n"
}

// ours reports whether a process was started by a launcher like this one.
func ours(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	command := strings.Join([]string{"", "--", sandbox.InTools, "entry", ""}, "\x00")
	return bytes.HasPrefix(text, []byte("bwrap\x00--args\x00")) && bytes.Contains(text, []byte(command))
}
