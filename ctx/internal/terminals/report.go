package terminals

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
)

// mailbox is where a launcher says how its start went: a datagram socket in a
// private directory.
type mailbox struct {
	sock *net.UnixConn
	dir  string
}

// maxSocketPath is what the kernel binds.
const maxSocketPath = 107

func openMailbox(runtime string) (*mailbox, error) {
	dir, err := os.MkdirTemp(runtime, "start-")
	if err == nil && len(dir)+len("/report") > maxSocketPath {
		os.Remove(dir)
		dir, err = os.MkdirTemp("", "ctx-start-")
	}
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "runtime directory: %w", err)
	}
	m := &mailbox{dir: dir}
	if m.sock, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: m.path()}); err != nil {
		os.RemoveAll(dir)
		return nil, errdefs.New(errdefs.KindOf(err), "report socket: %w", err)
	}
	return m, nil
}

func (m *mailbox) path() string { return filepath.Join(m.dir, "report") }

func (m *mailbox) close() {
	m.sock.Close()
	os.RemoveAll(m.dir)
}

// errNoReport: nothing had arrived.
var errNoReport = errors.New("no report")

// read waits for the report until the time, for ever without one. After close it
// is errNoReport too.
func (m *mailbox) read(until time.Time) (terminal.Report, error) {
	if err := m.sock.SetReadDeadline(until); err != nil {
		return terminal.Report{}, errNoReport
	}
	b := make([]byte, libctx.MaxInlineText)
	n, err := m.sock.Read(b)
	if err != nil {
		return terminal.Report{}, errNoReport
	}
	r, err := terminal.ParseReport(b[:n])
	if err != nil {
		return r, errdefs.New(errdefs.Protocol, "report of the launcher: %w", err)
	}
	return r, nil
}
