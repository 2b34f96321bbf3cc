package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups is where the machine's host has its control groups of version 2.
func cgroups() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		place, kind, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(place); strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 {
			return fields[4], nil
		}
	}
	return "", errors.New("no cgroup2 file system is mounted: a systemd needs one")
}

// killGroup kills whatever is in a control group, waits for its end and removes
// the group.
func killGroup(dir string) error {
	err := os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, dir+"/cgroup.events", unix.IN_MODIFY); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for {
		events, err := os.ReadFile(dir + "/cgroup.events")
		if err != nil {
			return err
		}
		if strings.Contains(string(events), "populated 0") {
			break
		}
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("%s: processes survive SIGKILL", dir)
		}
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		unix.Read(fd, make([]byte, 4096))
	}
	var groups []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	for _, path := range slices.Backward(groups) {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
