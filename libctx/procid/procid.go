// Package procid names processes so that a name never means another process: a
// pid together with its start time as a record, a pidfd as a handle.
package procid

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"cortexfs.org/libctx/errdefs"
)

// ID names one process of this boot for as long as the machine runs: pids are
// used again, pairs of pid and start time are not.
type ID struct {
	PID   int
	Start uint64 // clock ticks since boot, field 22 of /proc/PID/stat
}

// Of looks a process up. A pid that is not there is errdefs.NotFound; a zombie
// still is there.
func Of(pid int) (ID, error) {
	st, err := read(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: st.start}, nil
}

// Alive reports whether the process is there and is not a zombie.
func (id ID) Alive() bool {
	st, err := read(id.PID)
	return err == nil && st.start == id.Start && st.alive()
}

// Parent is the parent's pid. It is 0 if the parent lies outside the pid
// namespace of this process. A pid that is not there is errdefs.NotFound.
func Parent(pid int) (int, error) {
	st, err := read(pid)
	return st.parent, err
}

// Children lists the children of a process, oldest first; those of all its
// threads count. A pid that is not there is errdefs.NotFound.
func Children(pid int) ([]int, error) {
	if _, err := read(pid); err != nil {
		return nil, err
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, gone(pid, err)
	}
	var all []int
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if os.IsNotExist(err) {
			return scan(pid) // this kernel keeps no list
		}
		for _, f := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				all = append(all, child)
			}
		}
	}
	return all, nil
}

// scan finds children by asking every process for its parent.
func scan(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, errdefs.New(errdefs.IO, "list processes: %w", err)
	}
	type child struct {
		pid   int
		start uint64
	}
	var found []child
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if st, err := read(n); err == nil && st.parent == pid {
			found = append(found, child{n, st.start})
		}
	}
	slices.SortFunc(found, func(a, b child) int {
		if a.start != b.start {
			if a.start < b.start {
				return -1
			}
			return 1
		}
		return a.pid - b.pid
	})
	var all []int
	for _, c := range found {
		all = append(all, c.pid)
	}
	return all, nil
}

// stat is what /proc/PID/stat says, as far as it is used here.
type stat struct {
	state  byte
	parent int
	start  uint64
}

func read(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, gone(pid, err)
	}
	st, ok := parse(text)
	if !ok {
		return stat{}, errdefs.New(errdefs.IO, "process %d: its stat can not be read", pid)
	}
	return st, nil
}

// parse reads the line of /proc/PID/stat. The second field is the program's
// name in parentheses and may itself hold spaces and parentheses, so counting
// starts behind the last one.
func parse(text []byte) (stat, bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, false
	}
	f := bytes.Fields(text[end+1:]) // f[0] is field 3
	if len(f) < 20 || len(f[0]) != 1 || f[0][0] < 'A' || f[0][0] > 'z' {
		return stat{}, false
	}
	parent, err1 := strconv.Atoi(string(f[1]))
	start, err2 := strconv.ParseUint(string(f[19]), 10, 64)
	if err1 != nil || err2 != nil || parent < 0 {
		return stat{}, false
	}
	return stat{state: f[0][0], parent: parent, start: start}, true
}

func gone(pid int, err error) error {
	return errdefs.New(errdefs.NotFound, "process %d: is gone: %w", pid, err)
}
