// Package provider holds the real ctxmodel against providers that answer well,
// badly, or not at all (hazards of docs/reference/model-openai.md).
package provider

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
	"github.com/go-json-experiment/json/jsontext"
)

func TestMain(m *testing.M) { world.Main(m) }

const key = "sk-the-key-0123456789/+=abc"

// ctxmodel is one running ctxmodel.
type ctxmodel struct {
	t      *testing.T
	w      *world.World
	layout paths.Layout
	socket string
	cmd    *exec.Cmd
	log    *logged
}

// in is the same ctxmodel for a subtest.
func (m *ctxmodel) in(t *testing.T) *ctxmodel {
	sub := *m
	sub.t = t
	return &sub
}

// providers counts provider files, for names.
var providers atomic.Int64

// logged is what a program wrote to its standard error.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a ctxmodel that holds a socket, with an environment that would
// lead a careless library elsewhere.
func start(t *testing.T, env ...string) *ctxmodel {
	t.Helper()
	w := world.Empty(t)
	m := &ctxmodel{t: t, w: w, layout: w.Layout, socket: w.Dir + "/model.sock", log: new(logged)}
	m.layout.Config, m.layout.Secrets = w.Dir+"/config", w.Dir+"/secrets"
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: m.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	passed, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer passed.Close()
	m.cmd = w.Command("ctxmodel", "serve", "--idle", "0", "--log-level", "debug", "--root", w.Root, "--config", m.layout.Config, "--secrets", m.layout.Secrets)
	m.cmd.Env = append(append(m.cmd.Env, "LISTEN_FDS=1"), env...)
	m.cmd.ExtraFiles = []*os.File{passed}
	m.cmd.Stderr = m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.cmd.Process.Signal(syscall.SIGTERM)
		if err := m.cmd.Wait(); err != nil {
			t.Errorf("ctxmodel: %v", err)
		}
		if strings.Contains(m.log.String(), key) {
			t.Errorf("the key is in the log")
		}
		if t.Failed() {
			t.Logf("ctxmodel said:\n%s", m.log)
		}
	})
	return m
}

// provider writes the file of a provider of model "m" and its key, and returns
// the model's name.
func (m *ctxmodel) provider(base string, change ...func(*provider.Provider)) libctx.Model {
	m.t.Helper()
	p := &provider.Provider{
		Name: fmt.Sprintf("p%d", providers.Add(1)), Format: "openai.chat", BaseURL: base, Key: provider.KeyRequired,
		Models: []provider.Model{{ID: "vendor/m:1", Name: "m"}},
	}
	for _, f := range change {
		f(p)
	}
	if err := provider.Save(m.layout, p); err != nil {
		m.t.Fatal(err)
	}
	if p.Key == provider.KeyRequired {
		if err := provider.SetKey(m.layout, p.Name, p.Slot(), provider.NewSecret(key)); err != nil {
			m.t.Fatal(err)
		}
	}
	return libctx.Model(p.Name + "/m")
}

// plays is provider with a server that answers in turn.
func (m *ctxmodel) plays(answers ...scripted.Answer) (libctx.Model, *scripted.Server) {
	m.t.Helper()
	s := scripted.New(m.t, scripted.InTurn(m.t, answers...))
	return m.provider(s.URL), s
}

// asks is a request with one word of a user.
func asks(model libctx.Model) *modelwire.Generate {
	return &modelwire.Generate{
		Version: 1, Model: model,
		Messages: []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text("hello")}}},
		Tools:    []modelwire.Tool{{Name: "fs.read", Parameters: jsontext.Value(`{"type":"object"}`)}, {Name: "tsh", Parameters: jsontext.Value(`{"type":"object"}`)}},
	}
}

// dial connects and sends a request.
func (m *ctxmodel) dial(r modelwire.Request) *net.UnixConn {
	m.t.Helper()
	line, err := modelwire.MarshalRequest(r)
	if err != nil {
		m.t.Fatal(err)
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: m.socket})
	if err != nil {
		m.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(3 * world.Patience)) // some answers are large
	if _, err := c.Write(line); err != nil {
		m.t.Fatal(err)
	}
	return c
}

// answer is what came of a request.
type answer struct {
	frames  []modelwire.Frame
	text    string // provisional
	message *modelwire.MessageFrame
	usage   *modelwire.Usage
	failure *modelwire.Failure
	done    bool
}

// reader reads the frames of an answer, in the order they must come.
type reader struct {
	answer
	lines  *wire.Lines
	stream modelwire.Stream
}

func newReader(c io.Reader) *reader { return &reader{lines: wire.NewLines(c, libctx.MaxModelFrame)} }

// until reads up to the first frame of a kind.
func (r *reader) until(t *testing.T, kind string) {
	t.Helper()
	for {
		line, err := r.lines.Next()
		if err != nil {
			t.Fatalf("after %d frames: %v", len(r.frames), err)
		}
		f, err := r.stream.Next(line)
		if err != nil {
			t.Fatalf("%.300q: %v", line, err)
		}
		r.take(f)
		if f.Kind() == kind {
			return
		}
	}
}

// ask does a request to its end.
func (m *ctxmodel) ask(r modelwire.Request) *answer {
	m.t.Helper()
	c := m.dial(r)
	defer c.Close()
	read := newReader(c)
	read.stream.Op = r.Op()
	read.until(m.t, "done")
	if _, err := read.lines.Next(); !errors.Is(err, io.EOF) {
		m.t.Errorf("after done: %v", err)
	}
	return &read.answer
}

func (a *answer) take(f modelwire.Frame) {
	a.frames = append(a.frames, f)
	switch f := f.(type) {
	case *modelwire.Delta:
		a.text += f.Text
	case *modelwire.MessageFrame:
		a.message = f
	case *modelwire.Usage:
		a.usage = f
	case *modelwire.Error:
		a.failure = &f.Failure
	case *modelwire.Done:
		a.done = f.Status == "ok"
	}
}

// said is the answer in a few words: the parts of a message, or how it failed.
func (a *answer) said() string {
	var out []string
	if a.message != nil {
		out = append(out, a.message.Stop)
		for _, p := range a.message.Content {
			text := p.Text
			if p.Type == "tool_call" {
				text = string(p.Call) + " " + string(p.Name) + " " + string(p.Arguments)
				if p.Invalid != "" {
					text += " !" + p.Invalid
				}
			}
			out = append(out, p.Type+" "+text)
		}
	}
	if f := a.failure; f != nil {
		text := fmt.Sprintf("%s %s %d %s", f.Code, f.Phase, f.Status, f.Class)
		if f.ProviderCode != "" {
			text += " " + f.ProviderCode
		}
		if f.RetryAfterMS != 0 {
			text += fmt.Sprintf(" after %d", f.RetryAfterMS)
		}
		if f.GenerationSeen {
			text += " seen"
		}
		if f.Accepted {
			text += " accepted"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}
