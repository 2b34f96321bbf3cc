package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/peercred"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/unixsock"
)

const patience = time.Minute

// recorded is a machine's systemd that remembers what it was asked for.
type recorded struct {
	mu   sync.Mutex
	said []string
	fail error // of Enable

	settled int
}

func (r *recorded) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorded) Enable(_ context.Context, a libctx.Agent, network bool) error {
	r.say("enable %s %v", a, network)
	return r.fail
}

func (r *recorded) Network(_ context.Context, a libctx.Agent, open bool) (bool, error) {
	r.say("network %s %v", a, open)
	return open, nil
}

func (r *recorded) Remove(_ context.Context, a libctx.Agent) error {
	r.say("remove %s", a)
	return nil
}

func (r *recorded) took() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.said, ", ")
	r.said = nil
	return s
}

func (r *recorded) Settle(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled++
	return nil
}

// rig is a server of a tree of this process's user.
type rig struct {
	*testing.T
	*Server
	layout paths.Layout
	units  *recorded
	socket string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "adm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &rig{T: t, layout: paths.New(paths.Env{RuntimeDir: dir, Home: dir, UID: os.Geteuid()}, dir+"/tree"), units: &recorded{}, socket: dir + "/admin.sock"}
	if _, err := tree.Init(r.layout, nil); err != nil {
		t.Fatal(err)
	}
	l, err := unixsock.Listen(r.socket, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = New(Config{Layout: r.layout, Listener: l, Units: r.units, Log: log.Discard()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.Close()
	})
	return r
}

// say sends bytes, and returns the line that answers.
func (r *rig) say(text string) string {
	r.Helper()
	c, err := net.Dial("unix", r.socket)
	if err != nil {
		r.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, text)
	c.(*net.UnixConn).CloseWrite()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil && err != io.EOF {
		r.Fatal(err)
	}
	return line
}

func (r *rig) want(request, answer string) {
	r.Helper()
	if got := r.say(request); !strings.Contains(got, answer) {
		r.Errorf("%.200s: %s, not %s", request, got, answer)
	}
}

func (r *rig) control(agent, name string) string {
	text, _ := os.ReadFile(filepath.Join(r.layout.Root, "agent", agent+".d", name))
	return string(text)
}

func TestLifeOfAnAgent(t *testing.T) {
	r := newRig(t)
	r.want(`{"op":"ping"}`+"\n", `"type":"pong"`)
	r.want(`{"op":"agent.new","agent":"a-1","model":"debug/echo","tools":["fs.list"],"native":["fs.read"],"perm":"r--","allow":["network:default connect"],"mounts":["/srv:/data:ro"],"system":"Hi.\n"}`+"\n", `"type":"done"`)
	if got := r.units.took(); got != "enable a-1 true" {
		t.Errorf("units: %s", got)
	}
	for name, want := range map[string]string{"system.md": "Hi.\n", "perm": "r--\n", "tools": "fs.read\n", "owner": fmt.Sprint(os.Geteuid()) + "\n"} {
		if got := r.control("a-1", name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := r.control("a-1", "mount"); !strings.Contains(got, "/srv") {
		t.Errorf("mount: %q", got)
	}
	r.want(`{"op":"agent.new","agent":"a-1","model":"debug/echo"}`+"\n", `"code":"EEXIST"`)
	r.want(`{"op":"agent.set","agent":"a-1","control":"timeout","content":"5m"}`+"\n", `"type":"done"`)
	if got := r.units.took(); got != "" || r.control("a-1", "timeout") != "5m\n" {
		t.Errorf("units: %s, timeout %q", got, r.control("a-1", "timeout"))
	}
	r.want(`{"op":"agent.set","agent":"a-1","control":"timeout","content":"soon"}`+"\n", `"code":"EINVAL"`)
	r.want(`{"op":"agent.set","agent":"a-1","control":"pid","content":"1"}`+"\n", `"code":"EINVAL"`)
	r.want(`{"op":"agent.set","agent":"a-1","control":"policy","content":"allow a-1_t tool:tsh execute\nallow a-1_t model:debug/echo use\n"}`+"\n", `"type":"done"`)
	if got := r.units.took(); got != "network a-1 false" {
		t.Errorf("units: %s", got)
	}
	r.want(`{"op":"agent.enable","agent":"a-1"}`+"\n", `"type":"done"`)
	if got := r.units.took(); got != "enable a-1 false" {
		t.Errorf("units: %s", got)
	}
	r.want(`{"op":"agent.rm","agent":"a-1"}`+"\n", `"type":"done"`)
	if got := r.units.took(); got != "remove a-1" {
		t.Errorf("units: %s", got)
	}
	r.want(`{"op":"agent.rm","agent":"a-1"}`+"\n", `"code":"ENOENT"`)
	r.want(`{"op":"agent.set","agent":"a-1","control":"perm","content":"r--"}`+"\n", `"code":"ENOENT"`)
}

// The program comes behind the request: as many bytes as it said, and no more.
func TestProgram(t *testing.T) {
	r := newRig(t)
	script := "#!/bin/sh\n" + strings.Repeat("# long\n", 100_000)
	r.want(fmt.Sprintf(`{"op":"agent.new","agent":"prog","program":%d}`+"\n%s", len(script), script), `"type":"done"`)
	got, err := os.ReadFile(filepath.Join(r.layout.Root, "agent/prog"))
	if err != nil || string(got) != script {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for what, c := range map[string]struct{ text, answer string }{
		"too short":    {`{"op":"agent.new","agent":"bad","program":100}` + "\n#!/bin/sh\n", `ends 90 bytes too early`},
		"none":         {`{"op":"agent.new","agent":"bad","program":100}` + "\n", `ends 100 bytes too early`},
		"no program":   {`{"op":"agent.new","agent":"bad","program":5}` + "\nhello", `neither an executable nor a script`},
		"too long":     {`{"op":"agent.new","agent":"longer","program":10}` + "\n#!/bin/sh\n" + strings.Repeat("x", 200_000), `"type":"done"`},
		"foreign name": {`{"op":"agent.new","agent":"a+b","model":"debug/echo"}` + "\n", `\"+\"`},
		"no model":     {`{"op":"agent.new","agent":"bad","model":"no/such"}` + "\n", `"code":"ENOENT"`},
		"no tool":      {`{"op":"agent.new","agent":"bad","model":"debug/echo","tools":["none.such"]}` + "\n", `"code":"ENOENT"`},
		"bad mount":    {`{"op":"agent.new","agent":"bad","model":"debug/echo","mounts":["x"]}` + "\n", `"code":"EINVAL"`},
		"two lines":    {`{"op":"ping"}` + "\n" + `{"op":"ping"}` + "\n", `"type":"pong"`},
		"no end":       {`{"op":"ping"}`, `no newline`},
		"too big":      {`{"op":"ping","agent":"` + strings.Repeat("x", libctx.MaxFrame) + "\"}\n", `"code":"EMSGSIZE"`},
		"nothing":      {"", ""},
	} {
		if got := r.say(c.text); !strings.Contains(got, c.answer) {
			t.Errorf("%s: %s, not %s", what, got, c.answer)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.layout.Root, "agent/longer")); string(text) != "#!/bin/sh\n" {
		t.Errorf("%q, %v", text, err)
	}
	// Nothing is left of what failed.
	entries, err := os.ReadDir(r.layout.Agents())
	if err != nil || len(entries) != 4 {
		t.Errorf("%v, %v", entries, err)
	}
}

// An agent whose socket can not listen is none.
func TestUnitsFail(t *testing.T) {
	r := newRig(t)
	r.units.fail = errdefs.New(errdefs.Unavailable, "systemd says no")
	r.want(`{"op":"agent.new","agent":"a","model":"debug/echo"}`+"\n", `systemd says no`)
	if entries, err := os.ReadDir(r.layout.Agents()); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// Who may do what goes by the kernel's word about the peer and by whose files
// they are.
func TestWhoMay(t *testing.T) {
	r := newRig(t)
	r.want(`{"op":"agent.new","agent":"mine","model":"debug/echo"}`+"\n", `"type":"done"`)
	me := uint32(os.Geteuid())
	stranger, other := me+1, me+2
	for _, c := range []struct {
		op    string
		peer  uint32
		owner *uint32
		may   bool
	}{
		{adminwire.Ping, stranger, nil, true},
		{adminwire.New, stranger, nil, true},
		{adminwire.New, stranger, &stranger, true},
		{adminwire.New, stranger, &other, false},
		{adminwire.New, stranger, new(uint32), false},
		{adminwire.New, 0, &other, true},
		{adminwire.New, nobody, nil, false},
		{adminwire.Set, me, nil, true},
		{adminwire.Set, stranger, nil, false},
		{adminwire.Set, nobody, nil, false},
		{adminwire.Set, 0, nil, true},
		{adminwire.Remove, me, nil, true},
		{adminwire.Remove, stranger, nil, false},
		{adminwire.Enable, stranger, nil, false},
	} {
		q := request{Request: adminwire.Request{Op: c.op, Agent: "mine", Owner: c.owner}, peer: peercred.Peer{UID: c.peer}}
		err := operations[c.op].may(r.Server, q)
		if (err == nil) != c.may || err != nil && !errdefs.Is(err, errdefs.Denied) {
			t.Errorf("uid %d, %s: %v", c.peer, c.op, err)
		}
	}
	var ops []string
	for op, row := range operations {
		if ops = append(ops, op); row.may == nil || row.do == nil {
			t.Errorf("%s has no requirement", op)
		}
	}
	if slices.Sort(ops); !slices.Equal(ops, []string{"agent.enable", "agent.new", "agent.rm", "agent.set", "ping"}) {
		t.Errorf("%v", ops)
	}
}

// Clients that say nothing are few of one user, and leave room for others.
func TestCrowd(t *testing.T) {
	r := newRig(t)
	s := New(Config{})
	for i := range libctx.MaxAdminOfUser + 1 {
		if full := s.enter(1000); full != (i == libctx.MaxAdminOfUser) {
			t.Errorf("connection %d: full %v", i, full)
		}
	}
	if s.enter(1001) || s.enter(0) {
		t.Error("others are kept out")
	}
	for range libctx.MaxAdminConnections {
		s.enter(0)
	}
	if !s.enter(1002) || s.enter(0) {
		t.Error("a full server lets users in, or root not")
	}
	s.leave(1002)
	if _, there := s.of[1002]; there {
		t.Error("who left is remembered")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.Alive(ctx)
	if ctx.Err() != nil {
		t.Error("the server does not answer")
	}
}

func TestIdle(t *testing.T) {
	r := newRig(t)
	l, err := unixsock.Listen(r.socket+"2", unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := New(Config{Layout: r.layout, Listener: l, Units: r.units, Log: log.Discard(), Idle: time.Millisecond})
	if err := s.Serve(context.Background()); err != nil {
		t.Error(err)
	}
	if r.units.settled != 1 {
		t.Errorf("at its end it has settled %d times", r.units.settled)
	}
}
