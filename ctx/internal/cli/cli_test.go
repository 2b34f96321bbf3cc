package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/asuser"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

// world is a tree with one agent, "coder", whose socket a test serves.
type world struct {
	t      *testing.T
	env    paths.Env
	layout paths.Layout
	dir    string // the caller's directory
	tty    bool
	stop   chan os.Signal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	w := &world{t: t, dir: t.TempDir(), stop: make(chan os.Signal, 2)}
	w.env = paths.Env{
		CTXRoot: filepath.Join(top, "tree"), Home: top, RuntimeDir: filepath.Join(top, "run"), ConfigHome: filepath.Join(top, "config"), UID: os.Geteuid(),
	}
	w.layout = paths.New(w.env, w.env.CTXRoot)
	exec := filepath.Join(top, "agent")
	if err := errors.Join(os.Mkdir(w.env.RuntimeDir, 0o700), os.WriteFile(exec, []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Init(w.layout, nil); err != nil {
		t.Fatal(err)
	}
	spec := tree.AgentSpec{Name: "coder", Owner: asuser.Self(), Exec: exec, Tools: []libctx.Tool{"fs.read"}}
	if err := tree.NewAgent(w.layout, spec); err != nil {
		t.Fatal(err)
	}
	return w
}

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

// run runs one command in this process.
func (w *world) run(args ...string) result { return w.runWith("", args...) }

func (w *world) runWith(stdin string, args ...string) result {
	w.t.Helper()
	var out, errs bytes.Buffer
	code := w.runOn(strings.NewReader(stdin), &out, &errs, args...)
	return result{code, out.String(), errs.String()}
}

func (w *world) runOn(in *strings.Reader, out, errs interface{ Write([]byte) (int, error) }, args ...string) int {
	from := &caller.Caller{
		Printer:    &output.Printer{Out: out, Err: errs, OutTTY: w.tty, ErrTTY: w.tty},
		In:         in,
		Config:     config.Config{Paths: w.env, Cwd: w.dir, Stdin: in.Len() == 0},
		Interrupts: func() (<-chan os.Signal, func()) { return w.stop, func() {} },
	}
	what, err := run(context.Background(), args, from)
	return exit(from.Printer, what, err)
}

func (w *world) want(got result, code int, out, errs string) {
	w.t.Helper()
	if got.code != code || got.out != out || got.err != errs {
		w.t.Errorf("exit %d, stdout %q, stderr %q\nwant %d, %q, %q", got.code, got.out, got.err, code, out, errs)
	}
}

// peer is the daemon's side of one connection.
type peer struct {
	t     *testing.T
	c     net.Conn
	lines *wire.Lines
}

// read reads the next request; the line is returned as it came.
func (p *peer) read() (string, wire.Request) {
	line, err := p.lines.Next()
	if err != nil {
		return "", nil
	}
	r, err := wire.DecodeRequest(line)
	if err != nil {
		p.t.Errorf("request %s: %v", line, err)
	}
	return string(line), r
}

// say writes lines of frames; RUN and ID stand for the run and the client id.
func (p *peer) say(id libctx.ClientID, frames ...string) {
	for _, f := range frames {
		if id == "" && strings.Contains(f, `"ID"`) {
			p.t.Errorf("%s needs a client id", f)
		}
		f = strings.NewReplacer("RUN", run1, "ID", string(id)).Replace(f)
		if _, err := fmt.Fprintln(p.c, f); err != nil {
			return
		}
	}
}

const run1 = "01JDZ0000000000000000000AA"

// serve listens as agent coder and gives each connection to the next handler.
func (w *world) serve(handlers ...func(p *peer)) {
	w.t.Helper()
	// Anywhere will do: the tree's link says where.
	path := filepath.Join(w.t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		w.t.Fatal(err)
	}
	link := w.layout.AgentLink("coder")
	os.Remove(link)
	if err := os.Symlink(path, link); err != nil {
		w.t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for _, handle := range handlers {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer c.Close()
				handle(&peer{w.t, c, wire.NewLines(c, libctx.MaxFrame)})
			})
		}
	})
	w.t.Cleanup(func() { l.Close(); served.Wait() })
}

const (
	start = `{"type":"start","id":"RUN.1","run":"RUN","session":"default","agent":"coder","client_id":"ID"}`
	done  = `{"type":"done","id":"RUN.9","run":"RUN","status":"ok"}`

	neverBegun = `{"type":"done","run":"RUN","client_id":"ID","status":"cancelled"}`
)

// answering serves one send with these frames.
func answering(frames ...string) func(*peer) {
	return func(p *peer) {
		_, r := p.read()
		switch r := r.(type) {
		case *wire.Send:
			p.say(r.ID, frames...)
		case *wire.Tsh:
			p.say(r.ID, frames...)
		}
		p.read() // until the client goes
	}
}

func TestSendShowsTheRun(t *testing.T) {
	w := newWorld(t)
	w.serve(answering(start,
		`{"type":"delta","run":"RUN","text":"Let me "}`,
		`{"type":"reasoning_delta","run":"RUN","text":"hidden"}`,
		`{"type":"delta","run":"RUN","text":"look."}`,
		`{"type":"message","id":"RUN.2","run":"RUN","role":"assistant","content":[{"type":"text","text":"Let me look."}]}`,
		`{"type":"tool_call","id":"RUN.3","run":"RUN","call":"c1","name":"fs.read","arguments":{"path":"README.md"}}`,
		`{"type":"tool_policy","id":"RUN.4","run":"RUN","call":"c1","allowed":true}`,
		`{"type":"tool_result","id":"RUN.5","run":"RUN","call":"c1","name":"fs.read","status":"ok","content":"x","truncated":true,"bytes":3174,"duration_ms":4}`,
		`{"type":"tool_call","id":"RUN.6","run":"RUN","call":"c2","name":"tsh","arguments":{"args":["shell.exec","make"]}}`,
		`{"type":"tool_policy","id":"RUN.7","run":"RUN","call":"c2","allowed":false,"code":"agent_policy","reason":"no line allows coder_t tool:shell.exec execute"}`,
		`{"type":"tool_result","id":"RUN.8","run":"RUN","call":"c2","status":"error","content":"not permitted","truncated":false,"duration_ms":0}`,
		`{"type":"news","run":"RUN","from":"a later version"}`,
		`{"type":"message","id":"RUN.9","run":"RUN","role":"assistant","content":[{"type":"text","text":"Done"}]}`,
		strings.Replace(done, "RUN.9", "RUN.10", 1)))
	w.want(w.run("agent", "send", "coder", "how", "long?"), 0, "Let me look.\nDone\n",
		"tool fs.read README.md … 3.1 KiB 4 ms\ntool shell.exec make … refused: no line allows coder_t tool:shell.exec execute (agent_policy)\n")
}

func TestSendQuietKeepsRefusals(t *testing.T) {
	w := newWorld(t)
	w.serve(answering(
		`{"type":"queued","run":"RUN","client_id":"ID","position":1}`, start,
		`{"type":"tool_call","id":"RUN.3","run":"RUN","call":"c1","name":"fs.read","arguments":{"path":"README.md"}}`,
		`{"type":"tool_result","id":"RUN.5","run":"RUN","call":"c1","name":"fs.read","status":"ok","content":"x","duration_ms":4}`,
		done))
	w.want(w.run("--quiet", "agent", "send", "coder", "x"), 0, "", "")
}

func TestTextIsInert(t *testing.T) {
	w := newWorld(t)
	w.serve(answering(start,
		`{"type":"delta","run":"RUN","text":"a\u001b[2J"}`,
		`{"type":"delta","run":"RUN","text":"\u202eb\rc\u009b"}`,
		`{"type":"error","run":"RUN","id":"RUN.2","code":"EIO","message":"tty\u001b]0;x\u0007\nhint: rm -rf","recoverable":true}`,
		`{"type":"tool_call","id":"RUN.3","run":"RUN","call":"c1","name":"fs.read","arguments":{"path":"\u001b[31m\nx"}}`,
		`{"type":"tool_result","id":"RUN.4","run":"RUN","call":"c1","status":"ok","content":"","duration_ms":1}`,
		`{"type":"error","run":"RUN","id":"RUN.5","code":"EREMOTEIO","message":"provider\u001b[0m\nctx: fine"}`,
		`{"type":"done","id":"RUN.6","run":"RUN","status":"error"}`))
	w.want(w.run("agent", "send", "coder", "x"), 1, `a\x1b[2J\u202eb\rc\u009b`+"\n",
		`agent: tty\x1b]0;x\x07\nhint: rm -rf`+"\n"+`tool fs.read \x1b[31m\nx … 0 B 1 ms`+"\n"+`ctx: agent send: provider\x1b[0m\nctx: fine`+"\n")
}

func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		frames []string
		code   int
		err    string
	}{
		{[]string{`{"type":"error","code":"EINVAL","message":"id was used for another request"}`}, 2, "ctx: agent send: id was used for another request\n"},
		{[]string{`{"type":"error","code":"EACCES","message":"you may not"}`}, 13, "ctx: agent send: you may not\n"},
		{[]string{`{"type":"error","code":"EAGAIN","message":"queue full"}`}, 1, "ctx: agent send: queue full\n"},
		{[]string{`{"type":"error","code":"ENEW","message":"of a later version"}`}, 1, "ctx: agent send: of a later version\n"},
		{[]string{start, `{"type":"error","run":"RUN","id":"RUN.2","code":"EPROTO","message":"broke its contract"}`,
			`{"type":"done","id":"RUN.3","run":"RUN","status":"error"}`}, 1, "ctx: agent send: broke its contract\n"},
		{[]string{start, `{"type":"done","id":"RUN.3","run":"RUN","status":"cancelled"}`}, 130, "ctx: agent send: the run was cancelled\n"},
		{[]string{start, `{"type":"done","id":"RUN.3","run":"RUN","status":"error"}`}, 1, "ctx: agent send: the run failed\n"},
		{[]string{"not json"}, 1, "ctx: agent send: answer of the agent: not a JSON object\n"},
	} {
		w.serve(answering(c.frames...))
		w.want(w.run("agent", "send", "coder", "x"), c.code, "", c.err)
	}
	w.serve(func(p *peer) { _, r := p.read(); p.say(r.(*wire.Send).ID, start) })
	w.want(w.run("agent", "send", "coder", "x"), 1, "", "ctx: agent send: the agent's process closed the connection before the run was over\n"+
		"hint: what it did is kept: ctx agent resume --session default coder\n")
}

func TestSendRequest(t *testing.T) {
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, "sub dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	var lines []string
	record := func(p *peer) {
		line, r := p.read()
		lines = append(lines, line)
		p.say(r.(*wire.Send).ID, start, done)
	}
	w.serve(record, record, record)
	w.want(w.run("agent", "send", "--session", "s1", "--workspace", "sub dir", "--cwd", "/workspace/x", "--id", "m-1", "coder", "a", "--json"), 0, "", "")
	w.want(w.runWith("from\nstdin\n", "agent", "send", "coder", "--id", "m-2", "-"), 0, "", "")
	w.want(w.runWith("piped", "agent", "send", "coder", "--id", "m-3"), 0, "", "")
	for i, want := range []string{
		`{"op":"send","id":"m-1","session":"s1","workspace":"` + w.dir + `/sub dir","cwd":"/workspace/x","input":"a --json"}`,
		`{"op":"send","id":"m-2","session":"default","workspace":"` + w.dir + `","input":"from\nstdin\n"}`,
		`{"op":"send","id":"m-3","session":"default","workspace":"` + w.dir + `","input":"piped"}`,
	} {
		if i < len(lines) && lines[i] != want {
			t.Errorf("request\n%s\nwant\n%s", lines[i], want)
		}
	}
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		stdin string
		args  []string
		code  int
		part  string
	}{
		{"", []string{"agent", "send", "coder"}, 2, "no input"},
		{"", []string{"agent", "send"}, 2, "something is missing"},
		{"", []string{"agent", "send", "coder", ""}, 2, "is empty"},
		{"\xff", []string{"agent", "send", "coder", "-"}, 2, "is not UTF-8"},
		{"a\x00b", []string{"agent", "send", "coder", "-"}, 2, "NUL"},
		{strings.Repeat("x", libctx.MaxFrame+1), []string{"agent", "send", "coder", "-"}, 2, "longer than"},
		{"", []string{"agent", "send", "../coder", "x"}, 2, "agent name"},
		{"", []string{"agent", "send", "--session", "a/b", "coder", "x"}, 2, "session name"},
		{"", []string{"agent", "send", "--id", "a b", "coder", "x"}, 2, "id "},
		{"", []string{"agent", "send", "--timeout", "soon", "coder", "x"}, 2, "timeout"},
		{"", []string{"agent", "send", "--timeout", "-1s", "coder", "x"}, 2, "timeout"},
		{"", []string{"agent", "send", "--workspace", "/nowhere/at/all", "coder", "x"}, 2, "workspace /nowhere/at/all"},
		{"", []string{"agent", "send", "nobody", "x"}, 1, `no agent "nobody"`},
		{"", []string{"agent", "show", "coder", "twice"}, 2, "too many words"},
		{"", []string{"agent", "tsh", "coder"}, 2, "no tool"},
		{"", []string{"agent", "tsh", "coder", "--", "tsh"}, 2, "can not begin"},
		{"", []string{"agent", "resume", "--after", "x", "coder"}, 2, "event id"},
		{"", []string{"agent", "set", "coder", "perm", "777"}, 2, "perm"},
		{"", []string{"agent", "get", "coder", "nonsense"}, 2, "not a control"},
		{"", []string{"policy", "explain", "coder", "fs.read", "{"}, 2, "arguments"},
		{"", []string{"agent", "new", "a", "--exec", "x", "--model", "y"}, 2, "exclude"},
		{"", []string{"agent", "new", "a"}, 2, "missing"},
		{"", []string{"--root", w.dir, "status"}, 1, "no tree"},
		{"", []string{"--root", w.dir, "agent", "ls"}, 1, ""},
		{"", nil, 2, "no command"},
		{"", []string{"agent"}, 2, "no command"},
	} {
		got := w.runWith(c.stdin, c.args...)
		if got.code != c.code || !strings.HasPrefix(got.err, "ctx: ") || !strings.Contains(got.err, c.part) || got.out != "" {
			t.Errorf("ctx %.60q: exit %d, stdout %q, stderr %q; want %d with %q", c.args, got.code, got.out, got.err, c.code, c.part)
		}
	}
}

func TestRawIsExactlyTheFrames(t *testing.T) {
	w := newWorld(t)
	frames := []string{start, `{"type":"delta","run":"RUN","text":"é\u001b\u202e‮"}`, `{"type":"done","id":"RUN.2","run":"RUN","status":"ok","more":1}`}
	w.serve(answering(frames...))
	want := strings.NewReplacer("RUN", run1, "ID", "m1").Replace(strings.Join(frames, "\n") + "\n")
	w.want(w.run("agent", "send", "--raw", "--id", "m1", "coder", "x"), 0, want, "")
}

func TestInterrupts(t *testing.T) {
	w := newWorld(t)
	w.serve(func(p *peer) {
		_, r := p.read()
		p.say(r.(*wire.Send).ID, start)
		w.stop <- os.Interrupt
		line, r := p.read()
		if c, ok := r.(*wire.Cancel); !ok || c.Session != "default" {
			t.Errorf("after Ctrl+C: %s", line)
		}
		p.say("", `{"type":"accepted","op":"cancel","run":"RUN"}`, `{"type":"done","id":"RUN.2","run":"RUN","status":"cancelled"}`)
	})
	w.want(w.run("agent", "send", "coder", "x"), 130, "", "ctx: agent send: the run was cancelled\n")

	// The cancel comes too late: the run's own end counts.
	w.serve(func(p *peer) {
		_, r := p.read()
		p.say(r.(*wire.Send).ID, start)
		w.stop <- os.Interrupt
		p.read()
		p.say("", `{"type":"error","code":"EALREADY","message":"it is over"}`, done)
	})
	w.want(w.run("agent", "send", "coder", "x"), 0, "", "")

	// An agent that does not react: the second one leaves at once.
	w.serve(func(p *peer) {
		_, r := p.read()
		p.say(r.(*wire.Send).ID, start)
		w.stop <- os.Interrupt
		p.read()
		w.stop <- os.Interrupt
		p.read() // the client goes
	})
	w.want(w.run("agent", "send", "coder", "x"), 130, "", "ctx: agent send: interrupted\n")

	// A queued run never starts; its done ends the command all the same.
	w.serve(func(p *peer) {
		_, r := p.read()
		id := r.(*wire.Send).ID
		p.say(id, `{"type":"queued","run":"RUN","client_id":"ID","position":2}`)
		w.stop <- os.Interrupt
		line, r := p.read()
		if c, ok := r.(*wire.Cancel); !ok || c.ID != run1 && c.ID != string(id) {
			t.Errorf("after Ctrl+C while queued: %s", line)
		}
		p.say(id, neverBegun, `{"type":"accepted","run":"RUN","op":"cancel"}`)
		p.read() // until the client goes
	})
	w.want(w.run("agent", "send", "coder", "x"), 130, "", "queued: 2 before this one\nctx: agent send: the run was cancelled\n")

	// Following a session is left, not cancelled.
	w.serve(func(p *peer) {
		p.read()
		p.say("earlier", start, `{"type":"delta","run":"RUN","text":"half"}`)
		w.stop <- os.Interrupt
		if line, r := p.read(); r != nil {
			t.Errorf("resume sent %s", line)
		}
	})
	if got := w.run("agent", "resume", "coder"); got.code != 130 || got.err != "ctx: agent resume: interrupted\n" {
		t.Errorf("resume: %+v", got)
	}
}

func TestTimeout(t *testing.T) {
	w := newWorld(t)
	w.serve(func(p *peer) {
		_, r := p.read()
		p.say(r.(*wire.Send).ID, start)
		p.read()
		p.say("", `{"type":"done","id":"RUN.2","run":"RUN","status":"cancelled"}`)
	})
	w.want(w.run("agent", "send", "--timeout", "20ms", "coder", "x"), 1, "", "ctx: agent send: the run took longer than --timeout and was cancelled\n")
}

func TestLaggedClientsLoseNothing(t *testing.T) {
	w := newWorld(t)
	w.serve(func(p *peer) {
		_, r := p.read()
		p.say(r.(*wire.Send).ID, start,
			`{"type":"message","id":"RUN.2","run":"RUN","role":"assistant","content":[{"type":"text","text":"one"}]}`,
			`{"type":"delta","run":"RUN","text":"tw"}`,
			`{"type":"lagged","run":"RUN","after":"RUN.2"}`)
		line, r := p.read()
		if q, ok := r.(*wire.Resume); !ok || string(q.After) != run1+".2" || q.Session != "default" {
			t.Errorf("after lagging: %s", line)
		}
		other := strings.ReplaceAll(done, "RUN", "01JDZ0000000000000000000BB")
		p.say("", `{"type":"message","id":"RUN.2","run":"RUN","role":"assistant","content":[{"type":"text","text":"one"}]}`, other,
			`{"type":"message","id":"RUN.3","run":"RUN","role":"assistant","content":[{"type":"text","text":"two"}]}`,
			`{"type":"message","id":"RUN.4","run":"RUN","role":"assistant","content":[{"type":"text","text":"three"}]}`, done)
		p.read()
	})
	w.want(w.run("agent", "send", "coder", "x"), 0, "one\ntwo\nthree\n", "")
}

// closed is an output whose reader went away.
type closed struct{}

func (closed) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}
}

func TestReaderGoesAway(t *testing.T) {
	w := newWorld(t)
	w.serve(answering(start, `{"type":"delta","run":"RUN","text":"hello"}`)) // the run goes on
	var errs bytes.Buffer
	if code := w.runOn(strings.NewReader(""), closed{}, &errs, "agent", "send", "coder", "x"); code != 141 || errs.Len() > 0 {
		t.Errorf("exit %d, stderr %q", code, errs.String())
	}
	if code := w.runOn(strings.NewReader(""), full{}, &errs, "agent", "ls"); code != 1 || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("exit %d, stderr %q", code, errs.String())
	}
}

func TestTsh(t *testing.T) {
	w := newWorld(t)
	result := func(more string) []string {
		return []string{start, `{"type":"tool_call","id":"RUN.2","run":"RUN","call":"c1","name":"tsh","arguments":{"args":["fs.read","x"]}}`,
			`{"type":"tool_result","id":"RUN.3","run":"RUN","call":"c1","content":"a\u001b[2J\r","truncated":false,"duration_ms":2,` + more + `}`, done}
	}
	w.serve(answering(result(`"status":"ok"`)...))
	w.want(w.run("--quiet", "agent", "tsh", "coder", "--", "fs.read", "x"), 0, "a\x1b[2J\r", "")
	w.tty = true
	w.serve(answering(result(`"status":"ok"`)...))
	w.want(w.run("--quiet", "agent", "tsh", "coder", "--", "fs.read", "x"), 0, `a\x1b[2J\r`+"\n", "")
	w.tty = false
	w.serve(answering(result(`"status":"error","exit_code":42`)...))
	w.want(w.run("agent", "tsh", "coder", "--", "fs.read", "x"), 42, "a\x1b[2J\r", "tool fs.read x … failed (exit 42) 6 B 2 ms\n")
	w.serve(answering(result(`"status":"error"`)...))
	w.want(w.run("--quiet", "agent", "tsh", "coder", "--", "fs.read", "x"), 1, "a\x1b[2J\r", "")
}

func TestFilesOnly(t *testing.T) {
	w := newWorld(t)
	w.want(w.run("agent", "ls"), 0, "coder\texec\t\tr--\tfs.read\n", "")
	w.want(w.run("agent", "ls", "--json"), 0, `{"agent":"coder","kind":"exec","model":"","perm":"r--","tools":["fs.read"],"error":""}`+"\n", "")
	w.want(w.run("agent", "ps"), 0, "coder\tstopped\t\t\t\n", "")
	w.want(w.run("agent", "status", "coder"), 0, "agent\tcoder\nsession\tdefault\nstate\tidle\nrun\t\nqueued\t0\npid\t\nterminal\t\n", "")
	w.want(w.run("agent", "stop", "coder"), 0, "", "agent coder is not running\n")
	w.want(w.run("agent", "cancel", "coder"), 1, "", "ctx: agent cancel: agent coder: no run is active\n")
	w.want(w.run("agent", "sessions", "coder"), 0, "", "")
	w.want(w.run("agent", "history", "coder"), 1, "", "ctx: agent history: agent coder: no session \"default\"\nhint: ctx agent sessions coder lists them\n")
	w.want(w.run("agent", "get", "coder", "perm"), 0, "r--\n", "")
	w.want(w.run("agent", "set", "coder", "perm", "rw-"), 0, "", "")
	w.want(w.runWith("line one\nline two", "agent", "set", "coder", "system.md", "-"), 0, "", "")
	w.want(w.run("agent", "get", "coder", "system.md"), 0, "line one\nline two", "")
	w.want(w.run("policy", "check", "coder"), 0, "", "agent coder: every control is right\n")
	if got := w.run("policy", "explain", "coder", "shell.exec"); got.code != 1 || !strings.Contains(got.out, "perm\tperm\t") || !strings.Contains(got.out, "agent policy\tagent_policy\t") {
		t.Errorf("explain: %+v", got)
	}
	if got := w.run("policy", "explain", "coder", "fs.read", `{"path":"x"}`); got.code != 0 || strings.Contains(got.out, "invalid") {
		t.Errorf("explain: %+v", got)
	}
	policy := filepath.Join(w.layout.Control("coder"), "policy")
	if err := os.WriteFile(policy, []byte("# no comments\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := w.run("policy", "check", "coder"); got.code != 2 || !strings.Contains(got.err, `policy: line 1: "#"`) {
		t.Errorf("check: %+v", got)
	}
	if got := w.run("file", "check", policy); got.code != 2 || !strings.Contains(got.err, `grammar "agent policy": policy: line 1: "#"`) {
		t.Errorf("file check: %+v", got)
	}
	if got := w.run("agent", "ls"); got.code != 0 || got.out != "coder\trefused\t\t\t\n" || !strings.Contains(got.err, "policy") {
		t.Errorf("ls of a refused agent: %+v", got)
	}
	w.want(w.run("agent", "rm", "coder", "--purge"), 0, "", "removed agent coder\n")
	w.want(w.run("agent", "ls"), 0, "", "")
	if got := w.run("tool", "ls"); !strings.Contains("\n"+got.out, "\nfs.list\tworkspace_read\t") {
		t.Errorf("tool ls: %+v", got)
	}
	w.want(w.run("tool", "which", "fs.read"), 0, filepath.Join(w.layout.Tools(), "fs.read")+"\n", "")
	if got := w.run("tool", "help", "fs.read"); got.code != 0 || !strings.Contains(got.out, "workspace_read (perm r--)") || !strings.Contains(got.out, `"path"`) {
		t.Errorf("tool help: %+v", got)
	}
	w.want(w.run("version"), 0, "ctx "+libctx.Build()+"\n", "")
	w.want(w.run("--version"), 0, "ctx "+libctx.Build()+"\n", "")
	if got := w.run("agent", "send", "--help"); got.code != 0 || !strings.HasPrefix(got.out, "ctx agent send [FLAGS] AGENT") {
		t.Errorf("help: %+v", got)
	}
}

func TestInitAndNew(t *testing.T) {
	w := newWorld(t)
	w.env.CTXRoot = filepath.Join(t.TempDir(), "my tree")
	w.layout = paths.New(w.env, w.env.CTXRoot)
	got := w.run("init")
	if got.code != 0 || !strings.Contains(got.out, "made\t"+w.layout.Tools()+"/\n") || got.err != "try: ctx agent new hello --model debug/tools --tool fs.list\n" {
		t.Errorf("init: %+v", got)
	}
	w.want(w.run("init"), 0, "", "tree "+w.layout.Root+": nothing to do\ntry: ctx agent new hello --model debug/tools --tool fs.list\n")
	other := filepath.Join(t.TempDir(), "other")
	if got := w.run("--root", other, "init", "--quiet", "--json"); got.code != 0 || !strings.HasPrefix(got.out, `{"made":"`+other+"/agent/\"}\n") || got.err != "" {
		t.Errorf("init --json: %+v", got)
	}
	if os.Geteuid() != 0 {
		if got := w.run("init", "--system"); got.code != 13 {
			t.Errorf("init --system: %+v", got)
		}
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(w.dir, "prog"), []byte("#!/bin/sh\n"), 0o600),
		os.WriteFile(filepath.Join(w.dir, "role.md"), []byte("be, brief"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	w.want(w.run("agent", "new", "--exec", "prog", "a", "--tool", "fs.read", "--native=shell.exec", "--perm", "rwx",
		"--mount", "/srv/a,b:/data:ro", "--allow", "network:default connect", "--system-prompt", "role.md"), 0, "",
		"made agent a\ntry: ctx agent send a hello\n")
	for control, want := range map[string]string{
		"perm": "rwx\n", "tools": "fs.read\nshell.exec\n", "system.md": "be, brief", "abi": libctx.ABI + "\n",
		"policy": "allow a_t tool:tsh execute\nallow a_t tool:fs.read execute\nallow a_t tool:shell.exec execute\nallow a_t network:default connect\n",
	} {
		w.want(w.run("agent", "get", "a", control), 0, want, "")
	}
	if got := w.run("agent", "get", "a", "mount"); !strings.Contains(got.out, "/srv/a,b\t/data\tro\t") {
		t.Errorf("mount: %+v", got)
	}
	w.want(w.run("agent", "new", "a", "--exec", "prog"), 1, "", "ctx: agent new: agent a: it is there already\nhint: ctx agent rm a removes it\n")
	w.want(w.run("agent", "new", "b", "--exec", "prog", "--tool", "fs.read,fs.list"), 2, "",
		"ctx: agent new: tool name \"fs.read,fs.list\": holds a character other than letters, digits and . _ + -\n")
	w.want(w.run("agent", "new", "m", "--model", "debug/echo", "--tool", "fs.read"), 0, "", "made agent m\n")
	if got := w.run("agent", "inspect", "m"); got.code != 0 || !strings.Contains(got.out, "admitted\tfs.read tsh\n") {
		t.Errorf("inspect: %+v", got)
	}
	if got := w.run("agent", "env", "m"); got.code != 0 || !strings.Contains(got.out, "\nHOME=/home/agent\n") {
		t.Errorf("env: %+v", got)
	}
	if got := w.run("agent", "tools", "a"); got.code != 0 || !strings.Contains(got.out, "fs.read\tallowed\tdirect\tworkspace_read\t") {
		t.Errorf("tools: %+v", got)
	}
}

// Names of files that nobody should have made are shown inert.
func TestFileNamesAreInert(t *testing.T) {
	w := newWorld(t)
	bad := filepath.Join(w.dir, "x\x1b[2J\n.d")
	if got := w.run("file", "check", bad); got.code != 1 || strings.ContainsAny(got.err, "\x1b") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	if got := w.run("agent", "show", "\x1b[31m"); got.code != 2 || strings.Contains(got.err, "\x1b") {
		t.Errorf("%+v", got)
	}
	if got := w.run("\u202egnorw"); got.code != 2 || strings.Contains(got.err, "\u202e") {
		t.Errorf("%+v", got)
	}
}
