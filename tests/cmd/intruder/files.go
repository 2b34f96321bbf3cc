package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens paths for reading, or lists what are directories.
func open(paths []string) {
	for _, path := range paths {
		st, err := os.Stat(path)
		if err == nil && st.IsDir() {
			_, err = os.ReadDir(path)
		} else if err == nil {
			_, err = os.ReadFile(path)
		}
		report("open "+path, err)
	}
}

// write changes what paths lead to in every way there is.
func write(paths []string) {
	for _, path := range paths {
		near := path + ".new"
		for _, try := range []struct {
			what string
			do   func() error
		}{
			{"open", func() error {
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err == nil {
					fmt.Fprintln(f, "# intruder")
					f.Close()
				}
				return err
			}},
			{"truncate", func() error { return os.Truncate(path, 0) }},
			{"create", func() error {
				f, err := os.OpenFile(near, os.O_WRONLY|os.O_CREATE, 0o644)
				if err == nil {
					f.Close()
				}
				return err
			}},
			{"rename over", func() error { return os.Rename(near, path) }},
			{"rename", func() error { return os.Rename(path, path+".old") }},
			{"exchange", func() error {
				return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, "/home/agent/data", unix.RENAME_EXCHANGE)
			}},
			{"chmod", func() error { return os.Chmod(path, 0o666) }},
			{"chown", func() error { return os.Chown(path, os.Getuid(), os.Getgid()) }},
			{"link", func() error { return os.Link(path, "/home/agent/data/linked") }},
			{"utime", func() error { return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Sec: 1}, {Sec: 1}}, 0) }},
			{"setxattr", func() error { return unix.Setxattr(path, "user.intruder", []byte("x"), 0) }},
			{"remove", func() error {
				if _, err := os.Lstat(path); err != nil {
					return err
				}
				return os.RemoveAll(path)
			}},
		} {
			report(try.what+" "+path, try.do())
		}
	}
}

// grant puts a line of its own into a file, or a file of its own in its place.
func grant(path, line string) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		fmt.Fprintln(f, line)
		f.Close()
	} else if err = os.WriteFile(path+".new", []byte(line+"\n"), 0o644); err == nil {
		err = os.Rename(path+".new", path)
	}
	report("grant "+path, err)
}

// fill writes n bytes into a file.
func fill(path string, n int) {
	f, err := os.Create(path)
	if err == nil {
		_, err = f.Write(make([]byte, n))
		f.Close()
	}
	report(fmt.Sprintf("fill %s", path), err)
}

// pace is how long names stay as they are: what is attacked does several things
// meanwhile, and what attacks takes no processor for itself.
var pace = unix.Timespec{Nsec: 50_000}

// exchange lets two names change places until standard input ends, and says how
// often they did.
func exchange(a, b string) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		bufio.NewReader(os.Stdin).ReadString('\n')
	}()
	fmt.Println("ready")
	for n := 0; ; n++ {
		select {
		case <-over:
			if n%2 == 1 { // as they were
				unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
			fmt.Println(n)
			return
		default:
		}
		if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
			n-- // the other side makes or removes it just now
		}
		unix.Nanosleep(&pace, nil)
	}
}

// descriptors lists what is open here, but for what the list itself takes.
func descriptors() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		report("list descriptors", err)
		return
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil || to == fmt.Sprintf("/proc/%d/fd", os.Getpid()) || strings.HasPrefix(to, "anon_inode:[event") {
			continue // this program's own
		}
		fmt.Println("fd", e.Name(), filepath.Clean(to))
	}
}
