package capsock

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// unchanged fails if the agent's prompt is not what it was at first.
func (w *world) unchanged(what string) {
	w.t.Helper()
	if got := w.control("system.md"); got != "as it was\n" {
		w.t.Errorf("%s: the prompt is %q", what, got)
	}
}

func TestPeerIsNotTheOwner(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	w.keeper.cfg.Owner.UID++ // so the processes here are a stranger's; if they are root's too
	if got := b.ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("%q", got)
	}
	w.unchanged("a stranger")
}

func TestPeerIsNoDescendant(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	if got := outside(t, c.Path(), w.request(c)); got != errdefs.Denied {
		t.Errorf("from outside: %q", got)
	}
	if got := newBox(t).ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("from a box that is not registered: %q", got)
	}
	// A box of another run of the same agent, at this one's socket and its own.
	c2, b2 := w.inside()
	if c2.Path() == c.Path() {
		t.Fatal("two runs have one socket")
	}
	if got := b2.ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("from another run: %q", got)
	}
	if got := b2.ask(c2, w.request(c)); got != errdefs.Invalid {
		t.Errorf("from another run, in this one's name: %q", got)
	}
	w.unchanged("strangers")
	if got := b.ask(c, w.request(c)); got != "" {
		t.Errorf("from inside: %q", got)
	}
}

func TestDepth(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	script := filepath.Join(t.TempDir(), "nest")
	must(t, os.WriteFile(script, []byte("n=$1; shift; if [ $n -gt 0 ]; then sh $0 $((n-1)) \"$@\"; exit; else \"$@\"; exit; fi\n"), 0o700))
	for n, want := range map[int]errdefs.Kind{3: "", libctx.MaxAncestry - 2: "", libctx.MaxAncestry: errdefs.Denied} {
		q := w.request(c)
		frame, err := q.Encode()
		must(t, err)
		got := q.DecodeReply([]byte(strings.TrimSuffix(b.through(fmt.Sprintf("sh %s %d", script, n), c.Path(), frame), "\n")))
		if errdefs.KindOf(got) != want {
			t.Errorf("%d shells deep: %v", n, got)
		}
	}
}

// TestOrphanThatLeft: the first process of a sandbox adopts the orphans in there,
// which are inside still. A box here adopts nobody: its orphans are outside.
func TestOrphanThatLeft(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	q := w.request(c)
	frame, err := q.Encode()
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/frame", frame, 0o600))
	must(t, unix.Mkfifo(dir+"/out", 0o600))
	b.begin(fmt.Sprintf("export CAPSOCK_HELPER=send SOCKET='%s'; (setsid sh -c '\"$EXE\" <%s/frame >%s/out' &); echo GONE", c.Path(), dir, dir))
	b.until("GONE")
	reply, err := os.ReadFile(dir + "/out")
	must(t, err)
	if got := q.DecodeReply(bytes.TrimSuffix(reply, []byte("\n"))); !errdefs.Is(got, errdefs.Denied) {
		t.Errorf("%v", got)
	}
	w.unchanged("an orphan that left")
}

func TestAfterTheRun(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	if got := b.ask(c, w.request(c)); got != "" {
		t.Fatalf("during the run: %q", got)
	}
	w.set("system.md", "as it was\n")
	path := c.Path()
	// One is connected, and says half of what it wants.
	frame, err := w.request(c).Encode()
	must(t, err)
	half := filepath.Join(t.TempDir(), "half")
	must(t, unix.Mkfifo(half, 0o600))
	b.begin(fmt.Sprintf("export CAPSOCK_HELPER=send SOCKET='%s'; \"$EXE\" <'%s'; echo END", path, half))
	f, err := os.OpenFile(half, os.O_WRONLY, 0) // its reader is there
	must(t, err)
	f.Write(frame[:len(frame)/2])
	w.served(c, 1)
	c.Close()
	c.Close()
	f.Write(frame[len(frame)/2:])
	f.Close()
	if got := b.until("END"); !strings.Contains(got, `"ECANCELED"`) {
		t.Errorf("who was connected: %s", got)
	}
	// The box lives on, which no sandbox of a run does: nobody hears it.
	if got := b.ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("after the run: %q", got)
	}
	if err := c.Register(b.id(), "bash"); !errdefs.Is(err, errdefs.Cancelled) {
		t.Errorf("registered after the run: %v", err)
	}
	// Not under the next run of the same socket either.
	next := w.run()
	if next.Path() != path {
		t.Error("a socket that is free is not used again")
	}
	if got := b.ask(next, w.request(next)); got != errdefs.Denied {
		t.Errorf("in the next run: %q", got)
	}
	w.unchanged("after the run")
	next.Close()
	w.keeper.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if _, err := w.keeper.Open("default", libctx.NewRun(), nil); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("opened when all is over: %v", err)
	}
}

// served waits until so many connections are being served.
func (w *world) served(c *Capability, n int) {
	w.t.Helper()
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	for len(c.door.conns) != n {
		c.door.changed.Wait()
	}
}

func TestPIDReuse(t *testing.T) {
	w := newWorld(t)
	c, b := w.run(), newBox(t)
	// What was registered is another process that had this number.
	other := b.id()
	other.Start--
	if err := c.Register(other, "bash"); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("another start time was registered: %v", err)
	}
	h, err := procid.Open(b.id().PID)
	must(t, err)
	c.roots[other.PID] = root{other, h, "bash"}
	if got := b.ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("a child of another process of that number: %q", got)
	}
	// The number and the time are right, and the process that was registered is gone.
	gone := newBox(t)
	dead, err := procid.Open(gone.id().PID)
	must(t, err)
	gone.end()
	h.Close()
	c.roots[b.id().PID] = root{b.id(), dead, "bash"}
	if got := b.ask(c, w.request(c)); got != errdefs.Denied {
		t.Errorf("a child of a process that is over: %q", got)
	}
	if err := c.Register(procid.ID{PID: gone.cmd.Process.Pid, Start: 1}, "bash"); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("a process that is gone was registered: %v", err)
	}
	w.unchanged("another process")
}

// TestPeerVanishes: the process that connected is the one that is looked at, and it
// must be there.
func TestPeerVanishes(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	dir := t.TempDir()
	frame, err := w.request(c).Encode()
	must(t, err)
	must(t, os.WriteFile(dir+"/frame", frame, 0o600))
	must(t, unix.Mkfifo(dir+"/go", 0o600))
	leave := fmt.Sprintf("export CAPSOCK_HELPER=leave SOCKET='%s' GO=%s/go FRAME=%s/frame; (\"$EXE\"; echo LEFT) | { read x; echo $x; cat; }; echo END", c.Path(), dir, dir)

	b.begin(leave)
	b.until("LEFT") // it was admitted or will not be; it is gone
	must(t, os.WriteFile(dir+"/go", nil, 0))
	if got := b.until("END"); !refused(got) {
		t.Errorf("a child of who connected: %q", got)
	}
	w.unchanged("a child of who connected")

	// It is gone before anybody looks at it.
	c.mu.Lock()
	b.begin(leave)
	b.until("LEFT")
	c.mu.Unlock()
	must(t, os.WriteFile(dir+"/go", nil, 0))
	if got := b.until("END"); !refused(got) {
		t.Errorf("who connected is gone: %q", got)
	}
	w.unchanged("who connected is gone")
}

// refused reports whether a reply turns somebody away; on a machine that is very
// slow their time may be over first.
func refused(reply string) bool {
	return strings.Contains(reply, `"EACCES"`) || strings.Contains(reply, `"ETIMEDOUT"`)
}

func TestIdentity(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	before, err := os.ReadFile(filepath.Join(w.layout.Control("other"), "system.md"))
	must(t, err)
	for name, change := range map[string]func(*capwire.Request){
		"another agent":   func(q *capwire.Request) { q.Agent = "other" },
		"another session": func(q *capwire.Request) { q.Session = "other" },
		"another run":     func(q *capwire.Request) { q.Run = libctx.NewRun() },
	} {
		q := w.request(c)
		good := q
		change(&q)
		if got := b.ask(c, q); got != errdefs.Invalid {
			t.Errorf("%s: %q", name, got)
		}
		w.unchanged(name)
		// That was no attempt of this capability's: the id is not used.
		if got := b.ask(c, good); got != "" {
			t.Errorf("after %s: %q", name, got)
		}
		w.set("system.md", "as it was\n")
	}
	after, err := os.ReadFile(filepath.Join(w.layout.Control("other"), "system.md"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the other agent's prompt is %q, %v", after, err)
	}
}

func TestReplay(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	q := w.request(c)
	if got := b.ask(c, q); got != "" {
		t.Fatalf("%q", got)
	}
	w.set("system.md", "as it was\n")
	for range 2 {
		if got := b.ask(c, q); got != errdefs.Already {
			t.Errorf("again: %q", got)
		}
	}
	more := w.request(c)
	more.ID = q.ID
	if got := b.ask(c, more); got != errdefs.Already {
		t.Errorf("another text under the id: %q", got)
	}
	// So is one whose attempt failed.
	bad := w.request(c)
	bad.Control = "policy"
	if got := b.ask(c, bad); got != errdefs.Invalid {
		t.Errorf("%q", got)
	}
	bad.Control = "system.md"
	if got := b.ask(c, bad); got != errdefs.Already {
		t.Errorf("the id of a failed attempt: %q", got)
	}
	w.unchanged("replays")
	// Ids are a run's own, and it has so many.
	next, nb := w.inside()
	q = w.request(next)
	q.ID = "id-1"
	if got := nb.ask(next, q); got != "" {
		t.Errorf("an id that another run used: %q", got)
	}
	for n := range libctx.MaxCapRequests - 1 {
		next.use(fmt.Sprint("more-", n))
	}
	if got := nb.ask(next, w.request(next)); got != errdefs.NoSpace {
		t.Errorf("one id too many: %q", got)
	}
	if got := nb.ask(next, q); got != errdefs.Already {
		t.Errorf("a used one then: %q", got)
	}
}

func TestContent(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	for name, text := range map[string]string{
		"over 8 KiB": strings.Repeat("x", libctx.MaxCapContent+1),
		"NUL":        "a\x00b",
	} {
		q := w.request(c)
		q.Content = &text
		if got := b.ask(c, q); got != errdefs.Invalid {
			t.Errorf("%s: %q", name, got)
		}
		w.unchanged(name)
	}
	for _, file := range []string{"policy", "perm", "approval", "effects", "tools", "meta.json", "hooks", "../other.d/system.md", "./system.md", "system.md\n", "SYSTEM.MD", "system.md/../policy", "/etc/passwd", "x"} {
		q := w.request(c)
		q.Control = file
		if got := b.ask(c, q); got != errdefs.Invalid {
			t.Errorf("%q: %q", file, got)
		}
	}
	w.unchanged("other controls")
	for _, text := range []string{strings.Repeat("y", libctx.MaxCapContent), "", "no end", "\r\n\t\x1b[2J \u202e\n"} {
		for _, file := range capwire.Controls() {
			q := w.request(c)
			q.Control, q.Content = file, &text
			if got := b.ask(c, q); got != "" || w.control(file) != text {
				t.Errorf("%s: %q: %q", file, text, got)
			}
			if st, err := os.Lstat(filepath.Join(w.layout.Control("coder"), file)); err != nil || st.Mode() != 0o644 {
				t.Errorf("%s: %v, %v", file, st.Mode(), err)
			}
		}
	}
}

func TestFrames(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	good, err := w.request(c).Encode()
	must(t, err)
	ping, err := capwire.Request{Op: capwire.Ping, ID: "p", Agent: "coder", Session: c.session, Run: c.run}.Encode()
	must(t, err)
	for name, tt := range map[string]struct {
		sent []byte
		code string // "" is a pong
	}{
		"ping":              {ping, ""},
		"ping and more":     {bytes.Repeat(ping, 3), ""},
		"a token":           {[]byte(strings.Replace(string(ping), "{", `{"token":"secret",`, 1)), ""},
		"a stranger member": {[]byte(strings.Replace(string(ping), "{", `{"uid":0,`, 1)), "EINVAL"},
		"no JSON":           {[]byte("hello\n"), "EINVAL"},
		"invalid UTF-8":     {[]byte(strings.Replace(string(good), "text", "t\xffxt", 1)), "EINVAL"},
		"too long":          {append(bytes.Repeat([]byte(" "), libctx.MaxCapFrame), good...), "EMSGSIZE"},
		"endless":           {bytes.Repeat([]byte("x"), 1<<20), "EMSGSIZE"},
		"children":          {[]byte(`{"op":"agent.create","request_id":"x","child":"c","input":"go"}` + "\n"), "ENOSYS"},
	} {
		got := b.send(c.Path(), tt.sent)
		want := `{"type":"pong","request_id":"p"}` + "\n"
		if tt.code == "" && got != want || tt.code != "" && (!strings.Contains(got, `"code":"`+tt.code+`"`) || strings.Count(got, "\n") != 1) {
			t.Errorf("%s: %q", name, got)
		}
	}
	w.unchanged("frames")

	// Half a frame, and then the end.
	if got := b.half(c, good[:len(good)-1]); !strings.Contains(got, `"EINVAL"`) {
		t.Errorf("no newline: %q", got)
	}
	if got := b.half(c, nil); got != "" {
		t.Errorf("nothing: %q", got)
	}
	w.unchanged("half a frame")
}

// half sends bytes from inside and closes the writing side.
func (b *box) half(c *Capability, sent []byte) string {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "half")
	must(b.t, os.WriteFile(file, sent, 0o600))
	b.begin(fmt.Sprintf("CAPSOCK_HELPER=half SOCKET='%s' \"$EXE\" <'%s'; echo END", c.Path(), file))
	return b.until("END")
}

// TestSilence: who connects and says nothing is told that its time is over.
func TestSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, b := w.inside()
	start := time.Now()
	if got := b.send(c.Path(), []byte(`{"op":`)); !strings.Contains(got, `"ETIMEDOUT"`) || time.Since(start) < libctx.CapRequestWait {
		t.Errorf("%q after %v", got, time.Since(start))
	}
}

func TestCrowds(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	// From outside: each is turned away, and takes nobody's place.
	var held []net.Conn
	for range 400 {
		conn, err := net.Dial("unix", c.Path())
		must(t, err)
		held = append(held, conn)
	}
	if got := b.ask(c, w.request(c)); got != "" {
		t.Errorf("beside strangers: %q", got)
	}
	for _, conn := range held {
		conn.SetDeadline(time.Now().Add(patience))
		if reply, err := io.ReadAll(conn); err != nil || !bytes.Contains(reply, []byte(`"EACCES"`)) {
			t.Fatalf("%q, %v", reply, err)
		}
		conn.Close()
	}
	// From inside: some are served, and wait for what never comes.
	b.begin(fmt.Sprintf("CAPSOCK_HELPER=crowd SOCKET='%s' \"$EXE\"; echo END", c.Path()))
	var all, busy int
	fmt.Sscan(b.until("END"), &all, &busy)
	if all != 3*libctx.MaxCapConnections || busy == 0 {
		t.Errorf("of a crowd of %d inside %d were turned away", all, busy)
	}
	w.served(c, 0)
	if got := b.ask(c, w.request(c)); got != "" {
		t.Errorf("after them: %q", got)
	}
}

// TestMayUpdate: what the policies, a person and hooks say counts at the moment of
// the request, whatever the sandbox was started for.
func TestMayUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world)
		call   errdefs.Kind // of the sandbox of a call of agent.update
	}{
		"no line in the policy": {func(w *world) { w.set("policy", "allow coder_t tool:tsh execute\nallow coder_t tool:bash execute\n") }, errdefs.Denied},
		"the tool's own policy": {func(w *world) {
			must(w.t, os.WriteFile(filepath.Join(w.layout.Tools(), "agent.update.d/policy"), nil, 0o644))
		}, errdefs.Denied},
		"no such tool":       {func(w *world) { must(w.t, os.Remove(filepath.Join(w.layout.Tools(), "agent.update"))) }, errdefs.Denied},
		"effects":            {func(w *world) { w.set("effects", "controlled\n") }, errdefs.Denied},
		"refused agent":      {func(w *world) { w.set("perm", "all\n") }, errdefs.Denied},
		"a person":           {func(w *world) { w.set("approval", "ask\n") }, ""},
		"a hook":             {func(w *world) { w.hook(0o755) }, ""},
		"a hook that is bad": {func(w *world) { w.hook(0o777) }, ""},
	} {
		w := newWorld(t)
		c, b := w.inside()
		call := newBox(t)
		must(t, c.Register(call.id(), "agent.update"))
		if got := b.ask(c, w.request(c)); got != "" {
			t.Fatalf("before: %q", got)
		}
		w.set("system.md", "as it was\n")
		tt.change(w)
		q := w.request(c)
		if got := b.ask(c, q); got != errdefs.Denied {
			t.Errorf("%s: %q", name, got)
		}
		w.unchanged(name)
		// The id is not used: nobody was authorized.
		if got := call.ask(c, q); got != tt.call {
			t.Errorf("%s, of the call: %q", name, got)
		}
	}
}

// hook makes a hook of the agent.
func (w *world) hook(mode os.FileMode) {
	w.t.Helper()
	dir := filepath.Join(w.layout.Control("coder"), "hooks/pre.d")
	must(w.t, os.MkdirAll(dir, 0o755))
	must(w.t, os.WriteFile(dir+"/10-look", []byte("#!/bin/sh\n"), 0o755))
	must(w.t, os.Chmod(dir+"/10-look", mode))
}

// TestLinks: what stands in the way is never written through.
func TestLinks(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	victim := filepath.Join(t.TempDir(), "victim")
	must(t, os.WriteFile(victim, []byte("keep"), 0o600))
	file := filepath.Join(w.layout.Control("coder"), "prompt.template.md")
	must(t, os.Symlink(victim, file))
	q := w.request(c)
	q.Control = "prompt.template.md"
	if got := b.ask(c, q); got != errdefs.Denied {
		t.Errorf("a link: %q", got)
	}
	must(t, os.Remove(file))
	must(t, os.Mkdir(file, 0o755))
	q = w.request(c)
	q.Control = "prompt.template.md"
	if got := b.ask(c, q); got != errdefs.Denied {
		t.Errorf("a directory: %q", got)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "keep" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRefusalsSayNothing: who may not learns no more than that.
func TestRefusalsSayNothing(t *testing.T) {
	w := newWorld(t)
	c, b := w.inside()
	w.set("policy", "allow coder_t tool:tsh execute\n")
	frame, err := wire.Marshal(w.request(c))
	must(t, err)
	if got, want := b.send(c.Path(), frame), `{"type":"error","request_id":"id-1","code":"EACCES","message":"not permitted"}`+"\n"; got != want {
		t.Errorf("%q", got)
	}
}
