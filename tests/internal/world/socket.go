package world

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// Frame is one line of the daemon, as anybody's JSON library sees it.
type Frame map[string]any

// Type is the frame's kind.
func (f Frame) Type() string { return f.Str("type") }

// Str is a text member, "" if it is missing.
func (f Frame) Str(name string) string {
	s, _ := f[name].(string)
	return s
}

// Conn is a hand-written client of an agent socket.
type Conn struct {
	w *World
	*net.UnixConn
	r *bufio.Reader
}

// Dial connects to an agent's socket by its name in the tree.
func (w *World) Dial(agent string) *Conn {
	w.T.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: filepath.Join(w.Root, "agent", agent+".sock")})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { c.Close() })
	return &Conn{w, c, bufio.NewReaderSize(c, 2<<20)}
}

// Send writes one line.
func (c *Conn) Send(line string) {
	c.w.T.Helper()
	c.SetWriteDeadline(time.Now().Add(Patience))
	if _, err := io.WriteString(c.UnixConn, line+"\n"); err != nil {
		c.w.T.Fatalf("send: %v", err)
	}
}

// Next reads one frame; at the end of the stream it is nil.
func (c *Conn) Next() Frame {
	c.w.T.Helper()
	c.SetReadDeadline(time.Now().Add(Patience))
	line, err := c.r.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return nil
	}
	if err != nil {
		c.w.T.Fatalf("read: %v after %.200q", err, line)
	}
	var f Frame
	if err := json.Unmarshal(line, &f); err != nil {
		c.w.T.Fatalf("the daemon wrote %.200q: %v", line, err)
	}
	return f
}

// Until reads frames up to and including the first of a kind, and returns all;
// the kind "" is any.
func (c *Conn) Until(kind string) []Frame {
	c.w.T.Helper()
	var all []Frame
	for {
		f := c.Next()
		if f == nil {
			c.w.T.Fatalf("the connection ended before %q; got %s", kind, Kinds(all))
		}
		all = append(all, f)
		if kind == "" || f.Type() == kind {
			return all
		}
	}
}

// Ask writes one request and reads up to a frame of a kind.
func (c *Conn) Ask(line, kind string) []Frame {
	c.w.T.Helper()
	c.Send(line)
	return c.Until(kind)
}

// Kinds is the kinds of frames, in order, deltas left out.
func Kinds(frames []Frame) string {
	var kinds []string
	for _, f := range frames {
		if t := f.Type(); t != "delta" && t != "reasoning_delta" {
			kinds = append(kinds, t)
		}
	}
	return strings.Join(kinds, " ")
}

// Last is the last frame.
func Last(frames []Frame) Frame { return frames[len(frames)-1] }

// JSON is a value as JSON text.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
