package runs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/tree"
)

// Process finds the process that serves an agent now, without waking one: the
// pid control says which it was last, and the process of that number must be
// `ctxd agent NAME` still.
func Process(l paths.Layout, a libctx.Agent) (procid.ID, bool) {
	text, err := tree.GetControl(l, a, "pid")
	if err != nil {
		return procid.ID{}, false
	}
	pid, err := control.ParsePid(text)
	if err != nil || pid <= 0 {
		return procid.ID{}, false
	}
	id, err := procid.Of(pid)
	if err != nil {
		return procid.ID{}, false
	}
	// Read between two looks at the start time, the line is of that process.
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !serves(line, a) || !id.Alive() {
		return procid.ID{}, false
	}
	return id, true
}

// serves reports whether a command line is that of `ctxd [FLAGS] agent [FLAGS]
// NAME`.
func serves(cmdline []byte, a libctx.Agent) bool {
	words := strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
	verb := slices.Index(words, "agent")
	return filepath.Base(words[0]) == "ctxd" && verb > 0 && slices.Contains(words[verb+1:], string(a))
}
