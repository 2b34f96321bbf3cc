package soak

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"cortexfs.org/tests/internal/checker"
	"cortexfs.org/tests/internal/world"
)

// message is something a client wants done, under one id, however often it has
// to say so.
type message struct {
	agent, session, id string
	op                 string // "send" or "tsh"
	input              string
	args               []string
	cancels            bool // it only ends when it is cancelled
}

func (m *message) line(workspace string) string {
	q := map[string]any{"op": m.op, "id": m.id, "session": m.session, "workspace": workspace}
	if m.op == "tsh" {
		q["args"] = m.args
	} else {
		q["input"] = m.input
	}
	return world.JSON(q)
}

// manner is how a client behaves in one exchange.
type manner struct {
	name  string
	half  bool          // closes its writing half behind the request
	pause time.Duration // before each frame it reads
	leave int           // hangs up after so many frames; 0: never
	stop  int           // asks for a cancel after so many frames; 0: never
	tell  string        // says something into the run once it goes on, by this operation; "": nothing
}

// end is how an exchange came out.
type end struct {
	status string // of done; "" if there was none
	code   string // of an error that is the whole answer
	kept   bool   // done was durable
	lagged bool
}

// client sends messages and writes down what it is told.
type client struct {
	w      *world.World
	name   string
	random *rand.Rand
	notes  *notebook
	tally  *tally
	seen   map[string]string // newest durable frame of each session, as a cursor
	known  map[string]bool   // frames written down already
	next   int
}

func newClient(w *world.World, t *tally, name string, random *rand.Rand) (*client, error) {
	f, err := os.Create(w.Dir + "/told-" + name)
	if err != nil {
		return nil, err
	}
	return &client{w: w, name: name, random: random, notes: &notebook{f: f, b: bufio.NewWriter(f)}, tally: t,
		seen: map[string]string{}, known: map[string]bool{}}, nil
}

// notebook is the file of what a client was told.
type notebook struct {
	mu sync.Mutex
	f  *os.File
	b  *bufio.Writer
}

func (n *notebook) add(note checker.Note) {
	line, err := json.Marshal(note)
	if err != nil {
		panic(err) // a struct of texts
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.b.Write(append(line, '\n')) // an error comes again from Flush
}

// close makes the notes readable for the checker.
func (n *notebook) close() error {
	err := n.b.Flush()
	if e := n.f.Close(); err == nil {
		err = e
	}
	return err
}

// frame writes a durable frame down, once.
func (c *client) frame(agent, session, line string, f world.Frame) {
	id := f.Str("id")
	if id == "" {
		return
	}
	c.seen[agent+"/"+session] = id
	key := agent + id + "\x00" + line
	if c.known[key] {
		return
	}
	c.known[key] = true
	c.notes.add(checker.Note{Agent: agent, Session: session, Frame: line})
}

// connection is one connection of a client.
type connection struct {
	*net.UnixConn
	r *bufio.Reader
}

// patience bounds the wait for one frame; only a hang takes that long.
const patience = 60 * time.Second

func (c *client) dial(agent string) (*connection, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: c.w.Root + "/agent/" + agent + ".sock"})
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(patience))
	return &connection{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// read reads one frame. io.EOF is a clean end; anything else that is no frame
// is a fault of the daemon, unless it died in the middle of a line.
func (k *connection) read() (line string, f world.Frame, err error) {
	k.SetReadDeadline(time.Now().Add(patience))
	text, err := k.r.ReadString('\n')
	if err != nil {
		return "", nil, err
	}
	line = strings.TrimSuffix(text, "\n")
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		return "", nil, fmt.Errorf("%w: %.200q", errGarbage, line)
	}
	return line, f, nil
}

var errGarbage = errors.New("what the daemon wrote is no frame")

// judge reports an error of a connection that a dying daemon does not explain.
func (c *client) judge(what string, err error) {
	if errors.Is(err, errGarbage) || errors.Is(err, os.ErrDeadlineExceeded) {
		c.tally.wrong("%s: %s: %v", c.name, what, err)
	}
}

// exchange asks for a message once and reads what comes, as mannered. An error
// means that the connection ended before the answer did.
func (c *client) exchange(m *message, how manner) (end, error) {
	k, err := c.dial(m.agent)
	if err != nil {
		return end{}, err
	}
	defer k.Close()
	if _, err := io.WriteString(k, m.line(c.w.Workspace)+"\n"); err != nil {
		return end{}, err
	}
	if how.half {
		k.CloseWrite()
	}
	over := make(chan struct{})
	var told sync.WaitGroup
	defer told.Wait()
	defer close(over)
	out, n, next, run := end{}, 0, 1, ""
	for {
		if how.pause > 0 {
			wait(how.pause)
		}
		line, f, err := k.read()
		if err != nil {
			c.judge(m.id+" of "+m.agent+"/"+m.session, err)
			return out, err
		}
		n++
		if id := f.Str("id"); id != "" {
			// The frames of a run come from the first on, without a gap.
			if run == "" {
				run = f.Str("run")
			}
			if want := fmt.Sprintf("%s.%d", run, next); id != want {
				c.tally.wrong("%s: %s: frame %s came where %s was due", c.name, m.id, id, want)
			}
			next++
			c.frame(m.agent, m.session, line, f)
		}
		switch f.Type() {
		case "error":
			if f.Str("run") == "" {
				out.code = f.Str("code")
				c.tally.count("refused " + out.code)
				if !excused(f) {
					c.tally.wrong("%s: %s: %s", c.name, m.id, line)
				}
				return out, nil
			}
		case "approval_request":
			answer := world.JSON(map[string]any{"op": "approve", "run": f.Str("run"), "id": f.Str("call"), "decision": "allow_once"})
			if _, err := io.WriteString(k, answer+"\n"); err != nil {
				return out, err
			}
		case "lagged":
			out.lagged = true
			return out, nil
		case "done":
			out.status, out.kept = f.Str("status"), f.Str("id") != ""
			return out, nil
		}
		if n == how.leave {
			return out, io.EOF
		}
		if n == 2 && how.tell != "" {
			told.Go(func() { c.tell(m.agent, m.session, how.tell, m.id+"-"+how.tell, over) })
		}
		if n == how.stop {
			go c.insist(m, over) // from elsewhere: this connection is busy
		}
	}
}

// excused reports whether a storm explains an error: storage fails, the agent is
// ending or owned by one that is, its servers are killed one after the other.
func excused(f world.Frame) bool {
	switch f.Str("code") {
	case "EAGAIN", "ENOSPC", "EIO":
		return true
	case "ECONNREFUSED":
		return strings.Contains(f.Str("message"), "its server does not start: signal: killed")
	}
	return false
}

// cancel asks for the end of a message and reports whether there is one.
func (c *client) cancel(m *message) bool {
	k, err := c.dial(m.agent)
	if err != nil {
		return false
	}
	defer k.Close()
	if _, err := io.WriteString(k, world.JSON(map[string]any{"op": "cancel", "id": m.id, "session": m.session})+"\n"); err != nil {
		return false
	}
	line, f, err := k.read()
	if err != nil {
		c.judge("cancel", err)
		return false
	}
	c.tally.count("cancel " + f.Type() + f.Str("code"))
	switch code := f.Str("code"); {
	case f.Type() == "accepted", code == "EALREADY":
		return true
	case code == "ENOENT", excused(f):
		return false
	}
	c.tally.wrong("%s: cancel: %s", c.name, line)
	return false
}

// insist cancels a message until that is accepted, or until is over.
func (c *client) insist(m *message, until <-chan struct{}) {
	for !c.cancel(m) {
		select {
		case <-until:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// deliver says a message until it is done for good, or until is over; it reports
// whether the message is done and recorded. The way of each attempt comes from
// how.
func (c *client) deliver(m *message, until <-chan struct{}, how func() manner) (done bool) {
	c.notes.add(checker.Note{Agent: m.agent, Session: m.session, Client: m.id, Input: m.input})
	for {
		way := how()
		c.tally.count("manner " + way.name)
		out, err := c.exchange(m, way)
		switch {
		case err == nil && out.kept:
			c.tally.count("done " + out.status)
			c.tally.count("messages")
			return true
		case err == nil && out.status == "cancelled":
			c.tally.count("cancelled while it waited")
			return false
		case err == nil && out.status != "":
			c.tally.count("ended without a record")
		case err != nil:
			c.tally.count("cut off")
		}
		if m.cancels && c.cancel(m) {
			continue
		}
		select {
		case <-until:
			return false
		case <-time.After(time.Duration(5+c.random.IntN(40)) * time.Millisecond):
		}
	}
}

// resume reads what is recorded of a session, from where the client stood or
// from the beginning, and hangs up after some frames.
func (c *client) resume(agent, session string, limit int) error {
	k, err := c.dial(agent)
	if err != nil {
		return err
	}
	defer k.Close()
	q := map[string]any{"op": "resume", "session": session}
	after := c.seen[agent+"/"+session]
	if after != "" && c.random.IntN(4) > 0 {
		q["after"] = after
	}
	if _, err := io.WriteString(k, world.JSON(q)+"\n"); err != nil {
		return err
	}
	had := map[string]bool{}
	for n := 0; limit == 0 || n < limit; n++ {
		line, f, err := k.read()
		if err != nil {
			c.judge("resume of "+agent+"/"+session, err)
			return err
		}
		if id := f.Str("id"); had[id] && id != "" {
			c.tally.wrong("%s: resume of %s/%s: frame %s twice", c.name, agent, session, id)
		} else {
			had[id] = true
		}
		c.frame(agent, session, line, f)
		switch {
		case f.Type() == "end":
			return nil
		case f.Type() == "lagged":
			return errors.New("lagged")
		case f.Type() == "error" && f.Str("run") == "":
			code := f.Str("code")
			c.tally.count("resume " + code)
			if !excused(f) && !(code == "ENOENT" && after == "") {
				c.tally.wrong("%s: resume of %s/%s after %q: %s", c.name, agent, session, q["after"], line)
			}
			return errors.New(code)
		}
	}
	return nil
}

// wait waits for a time; it is for what has to be slow.
func wait(d time.Duration) { <-time.After(d) }
