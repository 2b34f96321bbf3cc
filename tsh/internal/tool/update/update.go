// Package update is the tool agent.update: an agent replaces its own prompt
// texts. The tool decides nothing and writes nothing; it asks the daemon that
// carries its run out, over the run's capability socket
// (docs/reference/control-socket.md).
package update

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// Tool is agent.update for a process of that run.
func Tool(conf config.Self) tool.Tool {
	return tool.Tool{
		Name: "agent.update",
		Run: func(ctx context.Context, args jsontext.Value, out *tool.Output) error {
			return run(ctx, conf, args, out)
		},
	}
}

func run(ctx context.Context, conf config.Self, args jsontext.Value, out *tool.Output) error {
	var a struct {
		Control string  `json:"control"`
		Content *string `json:"content"`
	}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	// The daemon looks at all of it again; here it is said better.
	switch {
	case a.Control == "":
		return errdefs.New(errdefs.Invalid, "control is missing or empty")
	case !slices.Contains(capwire.Controls(), a.Control):
		return errdefs.New(errdefs.Invalid, "control %.80q can not be changed from inside a run: only %s", a.Control, strings.Join(capwire.Controls(), " and "))
	case a.Content == nil:
		return errdefs.New(errdefs.Invalid, "content is missing")
	case len(*a.Content) > libctx.MaxCapContent:
		return errdefs.New(errdefs.Invalid, "content has %d bytes, over the limit of %d", len(*a.Content), libctx.MaxCapContent)
	case strings.ContainsRune(*a.Content, 0):
		return errdefs.New(errdefs.Invalid, "content holds a NUL character")
	}
	if conf.Socket == "" || conf.Agent == "" || conf.Session == "" || conf.Run == "" {
		return errdefs.New(errdefs.Unavailable, "agent.update works inside a run: this process has no capability socket").
			WithHint("ctx agent set AGENT %s - changes the text from outside", a.Control)
	}
	q := capwire.Request{
		Op: capwire.Update, ID: newID(), Agent: libctx.Agent(conf.Agent), Session: libctx.Session(conf.Session), Run: libctx.Run(conf.Run),
		Control: a.Control, Content: a.Content,
	}
	if err := ask(ctx, conf.Socket, q); err != nil {
		return errdefs.New(errdefs.KindOf(err), "agent.update: %w", err)
	}
	fmt.Fprintf(out, "%s has %d bytes now; it counts from the next run on\n", a.Control, len(*a.Content))
	out.Notef("sha256 %x", sha256.Sum256([]byte(*a.Content)))
	return nil
}

// newID is a request id that no other request has.
func newID() string {
	var random [8]byte
	rand.Read(random[:])
	return "update-" + hex.EncodeToString(random[:])
}

// ask puts the request and reads the answer.
func ask(ctx context.Context, socket string, q capwire.Request) error {
	line, err := q.Encode()
	if err != nil {
		return err
	}
	conn, err := dial(socket)
	if err != nil {
		return errdefs.New(errdefs.Unavailable, "capability socket: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })()
	// Who says no before it has heard everything closes, and has said why.
	if _, err := conn.Write(line); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		return errdefs.New(errdefs.KindOf(err), "capability socket: %w", err)
	}
	reply, err := wire.NewLines(conn, libctx.MaxCapFrame).Next()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, io.EOF), errors.Is(err, wire.ErrTorn):
		return errdefs.New(errdefs.Protocol, "capability socket: it was closed without an answer")
	case err != nil:
		return errdefs.New(errdefs.KindOf(err), "capability socket: %w", err)
	}
	return q.DecodeReply(reply)
}

// dial connects to a Unix socket. Package net would make the program, which starts
// for every call of every tool, twice as slow to begin.
func dial(path string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that it has deadlines
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
