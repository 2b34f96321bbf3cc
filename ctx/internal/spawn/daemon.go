package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/detach"
	"cortexfs.org/libctx/errdefs"
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
	log, err := detach.OpenLog(d.Log)
	if err != nil {
		return err
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

	p, err := detach.Start(detach.Program{
		Argv: append([]string{d.Program}, d.Args...),
		Env:  append(append([]string{}, d.Env...), "NOTIFY_SOCKET="+n.path),
		Log:  log,
	})
	if err != nil {
		return err
	}
	ended := make(chan *os.ProcessState, 1)
	go func() { // ends with the daemon or with us
		state, _ := p.Wait()
		ended <- state
	}()
	ready := make(chan error, 1)
	go func() { ready <- n.wait() }() // ends with n.Close at the latest

	select {
	case err := <-ready:
		if err == nil {
			return nil
		}
		p.Kill()
		<-ended
		return errdefs.New(errdefs.Internal, "readiness of %s: %w", filepath.Base(d.Program), err)
	case state := <-ended:
		return d.failed(log, from, "ended ("+state.String()+")")
	case <-ctx.Done():
		p.Kill()
		<-ended
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return d.failed(log, from, "was not ready in time")
	}
}

func (d Daemon) failed(log *os.File, from int64, what string) error {
	name := filepath.Base(d.Program)
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
