package procid

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Credentials are the uid and the groups of a process.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32 // supplementary
}

// Identity is as whom a process runs. One that has several uids or gids at once
// is errdefs.Denied, a pid that is not there errdefs.NotFound. The owner of the
// process's directory in /proc is not asked: for a process that can not be dumped
// that is root.
func Identity(pid int) (Credentials, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Credentials{}, gone(pid, err)
	}
	c, err := parseStatus(string(text))
	if err != nil {
		return Credentials{}, errdefs.New(errdefs.KindOf(err), "process %d: %w", pid, err)
	}
	return c, nil
}

// parseStatus reads the lines of /proc/PID/status that say who a process is.
func parseStatus(text string) (c Credentials, err error) {
	found := 0
	for line := range strings.SplitSeq(text, "\n") {
		name, rest, _ := strings.Cut(line, ":")
		if name != "Uid" && name != "Gid" && name != "Groups" {
			continue
		}
		var ids []uint32
		for word := range strings.FieldsSeq(rest) {
			id, err := strconv.ParseUint(word, 10, 32)
			if err != nil {
				return Credentials{}, errdefs.New(errdefs.IO, "its status can not be read: %w", err)
			}
			ids = append(ids, uint32(id))
		}
		found++
		if name == "Groups" {
			c.Groups = ids
			continue
		}
		// Real, effective, saved, file system.
		if len(ids) != 4 || ids[0] != ids[1] || ids[0] != ids[2] || ids[0] != ids[3] {
			return Credentials{}, errdefs.New(errdefs.Denied, "its %s are %v", strings.ToLower(name)+"s", ids)
		}
		if name == "Uid" {
			c.UID = ids[0]
		} else {
			c.GID = ids[0]
		}
	}
	if found != 3 {
		return Credentials{}, errdefs.New(errdefs.IO, "its status can not be read")
	}
	return c, nil
}
