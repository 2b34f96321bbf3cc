package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// outside does to every process that it can see, but its own, what process does.
func outside() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		report("list processes", err)
	}
	mine := map[int]bool{os.Getpid(): true}
	for pid := os.Getppid(); pid > 1; { // the shell that started it
		mine[pid] = true
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		f := strings.Fields(string(text))
		if len(f) < 4 {
			break
		}
		pid, _ = strconv.Atoi(f[3])
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && !mine[pid] {
			process(pid)
		}
	}
}

// process looks into another process, changes it and ends it, as far as it may.
func process(pid int) {
	at := "/proc/" + strconv.Itoa(pid)
	for _, name := range []string{"environ", "maps", "stack"} {
		_, err := os.ReadFile(at + "/" + name)
		report("read "+at+"/"+name, err)
	}
	for _, name := range []string{"fd", "fdinfo", "map_files"} {
		_, err := os.ReadDir(at + "/" + name)
		report("list "+at+"/"+name, err)
	}
	for _, name := range []string{"root", "cwd", "exe"} {
		to, err := os.Readlink(at + "/" + name)
		if err == nil && to != "/" && name == "root" {
			to = at + "/root"
		}
		report("follow "+at+"/"+name, err)
	}
	_, err := os.ReadDir(at + "/root/workspace/../..")
	report("list "+at+"/root", err)
	f, err := os.OpenFile(at+"/mem", os.O_RDWR, 0)
	if err == nil {
		_, err = f.ReadAt(make([]byte, 8), 0x400000)
		f.Close()
	}
	report("open "+at+"/mem", err)
	err = ptrace(unix.PTRACE_SEIZE, pid)
	report("seize "+at, err)
	if err == nil {
		return // that is enough; who is traced can be stopped for good
	}
	var word [8]byte
	local := []unix.Iovec{{Base: &word[0], Len: 8}}
	for _, addr := range addresses(pid) {
		if _, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: addr, Len: 8}}, 0); err == nil {
			break
		}
	}
	report("read memory of "+at, err)
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		_, err = unix.PidfdGetfd(fd, 0, 0)
		unix.Close(fd)
	}
	report("take a descriptor of "+at, err)
	report("limit "+at, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil))
	report("stop "+at, unix.Kill(pid, unix.SIGSTOP))
	report("kill "+at, unix.Kill(pid, unix.SIGKILL))
}

func ptrace(request, pid int) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, 0, 0, 0)
	return failed(errno)
}

// addresses are where a process has memory, or where one may be guessed.
func addresses(pid int) []uintptr {
	guess := []uintptr{0x400000}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return guess
	}
	for line := range strings.Lines(string(text)) {
		from, _, _ := strings.Cut(line, "-")
		if n, err := strconv.ParseUint(from, 16, 64); err == nil {
			guess = append(guess, uintptr(n))
		}
	}
	return guess
}
