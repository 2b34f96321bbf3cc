package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// abstract connects to a socket without a file.
func abstract(name string) {
	for _, network := range []string{"unix", "unixpacket", "unixgram"} {
		c, err := net.Dial(network, "@"+name)
		if err == nil {
			_, err = c.Write([]byte("from inside"))
			c.Close()
		}
		report("reach "+name+" as "+network, err)
	}
}

// loopback connects to a service of the host.
func loopback(address string) {
	c, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err == nil {
		c.Close()
	}
	report("reach "+address, err)
}

// say connects to a socket, writes lines, and prints what comes until the end.
func say(path string, lines []string) {
	fd, err := wait(path)
	if err != nil {
		report("connect to "+path, err)
		return
	}
	f := os.NewFile(uintptr(fd), path)
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		report("connect to "+path, err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	for _, line := range lines {
		fmt.Fprintln(c, line)
	}
	c.(*net.UnixConn).CloseWrite()
	answers := bufio.NewScanner(c)
	answers.Buffer(nil, 2<<20)
	for answers.Scan() {
		fmt.Println(answers.Text())
	}
}

// crowd holds n connections open until standard input ends.
func crowd(path string, n int) {
	var all sync.WaitGroup
	gate := make(chan struct{}, 64)
	conns := make([]int, n)
	for i := range conns {
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			fd, err := wait(path)
			if err != nil {
				report("connect", err)
				return
			}
			conns[i] = fd
			unix.Write(fd, []byte(`{"op":"ping"}`+"\n")) // it may be closed by now
		})
	}
	all.Wait()
	held := 0
	for _, fd := range conns {
		if fd > 0 {
			held++
		}
	}
	fmt.Println("open", held)
	unix.Read(int(os.Stdin.Fd()), make([]byte, 1))
}

// wait connects as soon as there is room in the queue of the socket.
func wait(path string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// pass connects to a socket and gives the connection to whoever listens on
// another one.
func pass(path, to string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		report("connect to "+path, err)
		return
	}
	f, err := c.(*net.UnixConn).File()
	if err == nil {
		var out net.Conn
		if out, err = net.Dial("unix", to); err == nil {
			_, _, err = out.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil)
		}
	}
	report("pass a connection", err)
}
