package emit

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

func line(t testing.TB, f wire.Frame) []byte {
	t.Helper()
	b, err := wire.MarshalFrame(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func calls(id libctx.Call, name libctx.Tool, arguments string) wire.Frame {
	return &wire.ToolCall{Head: wire.Head{Type: "tool_call"}, Call: id, Name: name, Arguments: jsontext.Value(arguments)}
}

func decides(id libctx.Call, allowed bool) wire.Frame {
	p := &wire.ToolPolicy{Head: wire.Head{Type: "tool_policy"}, Call: id, Allowed: allowed}
	if !allowed {
		p.Code, p.Reason = "agent_policy", "no line allows coder_t tool:shell.exec execute"
	}
	return p
}

func results(id libctx.Call, name libctx.Tool, status, content string) *wire.ToolResult {
	return &wire.ToolResult{Head: wire.Head{Type: "tool_result"}, Call: id, Name: name, Status: status, Content: content, DurationMS: 4}
}

// terminal is the other end of a connection: what was emitted, and its end.
type terminal struct {
	texts chan string
	over  chan struct{}
}

// answering makes a Dial whose terminal greets and reads, if it is to.
func answering(t *testing.T, greets, reads bool) (func(context.Context, libctx.Session) (net.Conn, error), *terminal) {
	t.Helper()
	term := &terminal{make(chan string, 4096), make(chan struct{})}
	return func(context.Context, libctx.Session) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { theirs.Close() })
		go func() {
			defer close(term.over)
			in := bufio.NewReaderSize(theirs, 1<<20)
			for n := 0; n == 0 || reads; n++ {
				text, err := in.ReadBytes('\n')
				if err != nil {
					return
				}
				q, err := termwire.DecodeRequest(text)
				if err != nil {
					t.Errorf("%s: %v", text, err)
					return
				}
				switch q := q.(type) {
				case *termwire.Emit:
					if !greets {
						return
					}
					hello, _ := termwire.MarshalFrame(&termwire.Hello{Protocol: 1, Mode: "emit", Size: termwire.DefaultSize})
					theirs.Write(hello)
				case *termwire.Output:
					term.texts <- string(q.Data)
				}
			}
			<-t.Context().Done()
		}()
		return ours, nil
	}, term
}

func (x *terminal) all() string {
	<-x.over
	close(x.texts)
	var b strings.Builder
	for s := range x.texts {
		b.WriteString(s)
	}
	return b.String()
}

func TestEmitter(t *testing.T) {
	dial, term := answering(t, true, true)
	e := New(Config{Agent: "coder", Dial: dial, Log: log.Discard()})
	r := e.Run("default")
	for _, f := range []wire.Frame{
		&wire.Delta{Head: wire.Head{Type: "delta"}, Text: "x"},
		calls("c1", "fs.read", `{"path":"README.md"}`), decides("c1", true), results("c1", "fs.read", "ok", "one\ntwo\n"),
		&wire.Done{Head: wire.Head{Type: "done"}, Status: "ok"},
	} {
		if !r.Push(line(t, f)) {
			t.Error("a frame was not taken")
		}
	}
	r.Close()
	if !r.Push(line(t, decides("c1", true))) {
		t.Error("after the end")
	}
	got := bare(term.all())
	e.Close()
	if got != "┃ coder fs.read README.md\n┃ one\n┃ two\n┃ ok, 4ms fs.read\n" {
		t.Errorf("%q", got)
	}
	if r := e.Run("default"); !r.Push(line(t, decides("c1", true))) || !r.deaf {
		t.Error("an emitter that is closed emits")
	}
}

// Runs without calls connect to nothing; without a terminal nothing is kept.
func TestNoTerminal(t *testing.T) {
	asked := make(chan libctx.Session, 10)
	e := New(Config{Agent: "coder", Log: log.Discard(), Dial: func(_ context.Context, s libctx.Session) (net.Conn, error) {
		asked <- s
		return nil, errdefs.New(errdefs.NotFound, "none")
	}})
	quiet, r := e.Run("quiet"), e.Run("default")
	quiet.Push(line(t, &wire.Delta{Head: wire.Head{Type: "delta"}, Text: "x"}))
	quiet.Close()
	for range 1000 {
		r.Push(line(t, decides("c1", true)))
	}
	r.Close()
	e.Close()
	close(asked)
	var got []libctx.Session
	for s := range asked {
		got = append(got, s)
	}
	if len(got) != 1 || got[0] != "default" || !r.deaf || r.queue != nil {
		t.Errorf("asked for %v, %d frames kept", got, len(r.queue))
	}
}

// A terminal that does not read, or does not greet, holds up nobody: what finds
// no room is left out, and the end of the process is not kept waiting.
func TestSlowTerminal(t *testing.T) {
	for _, greets := range []bool{true, false} {
		dial, _ := answering(t, greets, false)
		e := New(Config{Agent: "coder", Dial: dial, Log: log.Discard()})
		r := e.Run("default")
		for i := range 10_000 {
			id := libctx.Call(fmt.Sprint("c", i))
			for _, f := range []wire.Frame{calls(id, "fs.read", `{"path":"x"}`), decides(id, true), results(id, "fs.read", "ok", strings.Repeat("x\n", 100))} {
				r.Push(line(t, f))
			}
		}
		r.mu.Lock()
		if len(r.queue) > libctx.MaxEmitQueue || !r.deaf && r.missed == 0 {
			t.Errorf("%d frames wait, %d were left out", len(r.queue), r.missed)
		}
		r.mu.Unlock()
		r.Close()
		e.Close()
	}
}

// What was left out is said.
func TestMissed(t *testing.T) {
	dial, term := answering(t, true, true)
	hold := make(chan struct{})
	e := New(Config{Agent: "coder", Log: log.Discard(), Dial: func(ctx context.Context, s libctx.Session) (net.Conn, error) {
		<-hold
		return dial(ctx, s)
	}})
	r := e.Run("default")
	for range libctx.MaxEmitQueue + 3 {
		r.Push(line(t, decides("c1", true)))
	}
	r.Close()
	close(hold)
	got := bare(term.all())
	e.Close()
	if strings.Count(got, "coder c1\n") != libctx.MaxEmitQueue || !strings.HasSuffix(got, "┃ … 3 more lines about calls are not shown\n") {
		t.Errorf("%s", got)
	}
}
