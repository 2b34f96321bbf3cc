package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// Daemon is a program to start in the background: its own session, nothing on
// stdin, its output in a log, no terminal, no directory kept busy.
type Daemon struct {
	Program string   // absolute
	Args    []string // without the program's name; the last one names what it does
	Env     []string // complete, without NOTIFY_SOCKET
	Log     string   // file its output is appended to; made 0600
	Runtime string   // private directory for the socket that tells readiness
}

// Start starts the daemon and returns when it said READY=1. A daemon that ends
// before, or is not ready when ctx is done, is errdefs.Unavailable with the
// last line of its log; one that is not ready is killed.
func (d Daemon) Start(ctx context.Context) error {
	log, err := os.OpenFile(d.Log, os.O_RDWR|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "log of %s: %w", filepath.Base(d.Program), err)
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return errdefs.New(errdefs.IO, "log %s: %w", d.Log, err)
	}
	n, err := listenNotify(d.Runtime)
	if err != nil {
		return err
	}
	defer n.Close()

	// What our own parent left open is not the daemon's business.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return errdefs.New(errdefs.KindOf(err), "close-on-exec: %w", err)
	}
	cmd := exec.Command(d.Program, d.Args...)
	cmd.Env = append(append([]string{}, d.Env...), "NOTIFY_SOCKET="+n.path)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errdefs.New(errdefs.Unavailable, "start %s: %w", d.Program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the daemon or with us
	ready := make(chan error, 1)
	go func() { ready <- n.wait() }() // ends with n.Close at the latest

	select {
	case err := <-ready:
		if err == nil {
			return nil
		}
		cmd.Process.Kill()
		<-ended
		return errdefs.New(errdefs.Internal, "readiness of %s: %w", filepath.Base(d.Program), err)
	case err := <-ended:
		return d.failed(log, from, "ended", err)
	case <-ctx.Done():
		cmd.Process.Kill()
		<-ended
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return d.failed(log, from, "was not ready in time", nil)
	}
}

func (d Daemon) failed(log *os.File, from int64, what string, err error) error {
	name := filepath.Base(d.Program)
	if err != nil {
		what += " (" + err.Error() + ")"
	}
	if line := lastLine(log, from); line != "" {
		what += ": " + line
	}
	return errdefs.New(errdefs.Unavailable, "%s %s %s", name, d.Args[len(d.Args)-1], what).
		WithHint("the whole log is %s", d.Log)
}

// lastLine is the last line written to the log since from, at most 4 KiB.
func lastLine(log *os.File, from int64) string {
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from = max(from, end-4096)
	b := make([]byte, max(end-from, 0))
	if _, err := log.ReadAt(b, from); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	b = bytes.TrimRight(b, "\n")
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}

// notify is the receiving end of sd_notify.
type notify struct {
	sock *net.UnixConn
	path string
	dir  string // private directory made for it; "" in the runtime directory
}

// maxSocketPath is what the kernel takes; the path goes into an environment
// variable, so the long-path way through a descriptor is not open here.
const maxSocketPath = 107

func listenNotify(runtime string) (*notify, error) {
	dir, err := os.MkdirTemp(runtime, "start-")
	if err == nil && len(dir)+2 > maxSocketPath {
		os.Remove(dir)
		dir, err = os.MkdirTemp("", "ctx-start-")
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "runtime directory: %w", err)
	}
	n := &notify{path: filepath.Join(dir, "n"), dir: dir}
	n.sock, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: n.path})
	if err != nil {
		os.RemoveAll(dir)
		return nil, errdefs.New(errdefs.KindOf(err), "readiness socket: %w", err)
	}
	return n, nil
}

// wait returns when a message says READY=1.
func (n *notify) wait() error {
	buf := make([]byte, 4096)
	for {
		size, err := n.sock.Read(buf)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		for line := range strings.SplitSeq(string(buf[:size]), "\n") {
			if line == "READY=1" {
				return nil
			}
		}
	}
}

func (n *notify) Close() {
	n.sock.Close()
	os.RemoveAll(n.dir)
}
