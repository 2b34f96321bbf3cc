package debug

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"cortexfs.org/ctxd/internal/model"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/provider"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json/jsontext"
)

// sink keeps frames and holds them to their order.
type sink struct {
	stream modelwire.Stream
	frames []modelwire.Frame
	seen   func(modelwire.Frame)
}

func (s *sink) Send(f modelwire.Frame) error {
	if _, err := modelwire.MarshalFrame(f); err != nil {
		return err
	}
	if err := s.stream.Follow(f); err != nil {
		return err
	}
	s.frames = append(s.frames, f)
	if s.seen != nil {
		s.seen(f)
	}
	return nil
}

func (s *sink) kinds() string {
	var words []string
	for _, f := range s.frames {
		words = append(words, f.Kind())
	}
	return strings.Join(words, " ")
}

func (s *sink) message(t *testing.T) *modelwire.MessageFrame {
	t.Helper()
	for _, f := range s.frames {
		if m, ok := f.(*modelwire.MessageFrame); ok {
			return m
		}
	}
	t.Fatalf("no message in %s", s.kinds())
	return nil
}

// ask asks a model with one tool, tsh.
func ask(ctx context.Context, name libctx.Model, list []modelwire.Message, change func(*modelwire.Generate)) (*sink, error) {
	g := &modelwire.Generate{
		Version: modelwire.Version, Model: name, Messages: list,
		Tools: []modelwire.Tool{{Name: "tsh", Parameters: jsontext.Value("{}")}},
	}
	if change != nil {
		change(g)
	}
	out := &sink{}
	err := Driver{}.Generate(ctx, nil, provider.Secret{}, g, out)
	return out, err
}

func user(text string) modelwire.Message {
	return modelwire.Message{Role: "user", Content: []wire.Part{wire.Text(text)}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEcho(t *testing.T) {
	long := strings.Repeat("aä", 1000)
	for in, want := range map[string]string{"hello": "start delta message usage", long: "start" + strings.Repeat(" delta", 6) + " message usage"} {
		out, err := ask(t.Context(), "debug/echo", []modelwire.Message{user("before"), user(in)}, nil)
		must(t, err)
		if got := out.kinds(); got != want {
			t.Errorf("%.20q: %s", in, got)
		}
		var text strings.Builder
		for _, f := range out.frames {
			if d, ok := f.(*modelwire.Delta); ok {
				text.WriteString(d.Text)
			}
		}
		if text.String() != in || out.message(t).Content[0].Text != in || out.message(t).Stop != modelwire.StopEnd {
			t.Errorf("%.20q is said otherwise", in)
		}
	}
	out, err := ask(t.Context(), "debug/echo", []modelwire.Message{{Role: "system", Content: []wire.Part{wire.Text("x")}}}, nil)
	must(t, err)
	if m := out.message(t); len(m.Content) != 0 {
		t.Errorf("%+v", m)
	}
	if _, err := ask(t.Context(), "debug/none", nil, nil); !errdefs.Is(err, errdefs.Invalid) {
		t.Error(err)
	}
}

// calls are the calls of a message in short.
func calls(m *modelwire.MessageFrame) string {
	var words []string
	for _, p := range m.Content {
		switch {
		case p.Type == "text":
			words = append(words, "say "+p.Text)
		case p.Invalid != "":
			words = append(words, string(p.Name)+"!"+p.Invalid)
		default:
			words = append(words, string(p.Name)+string(p.Arguments))
		}
	}
	return strings.Join(words, "; ")
}

// play asks debug/tools and answers its calls until it calls no more.
func play(t *testing.T, input string) (turns []string) {
	t.Helper()
	list := []modelwire.Message{user("run: before"), user(input)}
	for range 10 {
		out, err := ask(t.Context(), "debug/tools", list, nil)
		must(t, err)
		m := out.message(t)
		turns = append(turns, calls(m))
		if m.Stop != modelwire.StopToolCalls {
			return turns
		}
		answer := modelwire.Message{Role: "tool"}
		for i, p := range m.Content {
			if p.Type == "tool_call" {
				status, text := "ok", "line 1\nline 2\n"
				if i%2 == 1 {
					status, text = "error", strings.Repeat("line\n", 7)
				}
				answer.Content = append(answer.Content, wire.Part{Type: "tool_result", Call: p.Call, Status: status, Text: text})
			}
		}
		list = append(list, modelwire.Message{Role: "assistant", Content: m.Content}, answer)
	}
	t.Fatal("it calls for ever")
	return nil
}

func TestTools(t *testing.T) {
	for _, c := range []struct {
		input string
		turns []string
	}{
		{"nothing of ours", []string{"say There was nothing to run."}},
		{"run: fs.read README.md", []string{`tsh{"args":["fs.read","README.md"]}`, "say fs.read: line 1\nline 2"}},
		{"Please:\n run: fs.read 'a b'  \"c\\\"d\"\ncall: fs.list {\"path\":\".\"}\nthanks\n", []string{
			`tsh{"args":["fs.read","a b","c\"d"]}; fs.list{"path":"."}`,
			"say fs.read: line 1\nline 2\nfs.list failed: line\nline\nline\nline\nline …",
		}},
		{"run: a\nthen:\nrun: b\nthen:\nthen:\ncall: c", []string{
			`tsh{"args":["a"]}`, `tsh{"args":["b"]}`, `c{}`, "say a: line 1\nline 2\nb: line 1\nline 2\nc: line 1\nline 2",
		}},
		{"say: I look.\nrun: a", []string{`say I look.; tsh{"args":["a"]}`, "say a failed: line\nline\nline\nline\nline …"}},
		{"run: a\nthen:\nsay: Enough.\nthen:\nrun: never", []string{`tsh{"args":["a"]}`, "say Enough."}},
		{"call: fs.read {\"path\"\ncall: no+tool! {}\nrun:", []string{
			"fs.read!the arguments are not JSON: {\"path\"; !not the name of a tool: no+tool!; tsh{\"args\":[]}",
			"say fs.read: line 1\nline 2\na call failed: line\nline\nline\nline\nline …\ntsh: line 1\nline 2",
		}},
	} {
		if got := play(t, c.input); !reflect.DeepEqual(got, c.turns) {
			t.Errorf("%q:\n%q\nnot\n%q", c.input, got, c.turns)
		}
	}
	if _, err := ask(t.Context(), "debug/tools", []modelwire.Message{user("run: 'open")}, nil); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("an open quote: %v", err)
	}
	for _, change := range []func(*modelwire.Generate){
		func(g *modelwire.Generate) { g.Tools = nil }, func(g *modelwire.Generate) { g.ToolChoice = "none" },
	} {
		out, err := ask(t.Context(), "debug/tools", []modelwire.Message{user("run: a")}, change)
		must(t, err)
		if got := calls(out.message(t)); got != "say There was nothing to run." {
			t.Errorf("without tools: %s", got)
		}
	}
	many := strings.Repeat("run: a\n", libctx.MaxModelParts+1)
	if _, err := ask(t.Context(), "debug/tools", []modelwire.Message{user(many)}, nil); !errdefs.Is(err, errdefs.Provider) {
		t.Errorf("too many calls: %v", err)
	}
}

// write makes a script and returns its path.
func write(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return path
}

func scripted(path string) func(*modelwire.Generate) {
	return func(g *modelwire.Generate) { g.Options = map[string]string{"script": path} }
}

func TestScript(t *testing.T) {
	path := write(t,
		"# a comment", "",
		`{"block":"one"}`,
		`{"expect":{"messages":1,"last":"hello","tools":["tsh"],"contains":["\"hello\""],"lacks":["goodbye"]}}`,
		`{"answer":{"text":"hi","reasoning":"hm","calls":[{"name":"tsh","arguments":{"args":["a"]}},{"name":"tsh","arguments":"{\"a"},{"name":"x y","arguments":""}]}}`,
		`{"type":"usage","input":1}`,
		`{"block":"two"}`,
		`{"type":"lifecycle","state":"loading"}`,
		`{"type":"start","model":"debug/script","request_id":"r"}`,
		`{"delay_ms":1}`,
		`{"type":"delta","text":"a"}`,
		`{"fail":{"code":"EREMOTEIO","phase":"provider","status":503,"class":"overloaded","retry_after_ms":10,"message":"busy"}}`,
		`{"block":"three"}`,
		`{"type":"delta","text":"a"}`,
		`{"fault":"drop"}`,
		`{"block":"four"}`,
		`{"type":"delta","text":"a"}`,
		`{"block":"five","repeat":true}`,
		`{"answer":{"text":"done","stop":"length"}}`,
	)
	next := func() (*sink, error) {
		return ask(t.Context(), "debug/script", []modelwire.Message{user("hello")}, scripted(path))
	}
	out, err := next()
	must(t, err)
	if got := out.kinds(); got != "start reasoning_delta delta call_start call_delta call_end call_start call_delta call_end call_start call_delta call_end message usage" {
		t.Error(got)
	}
	if got := calls(out.message(t)); got != `; say hi; tsh{"args":["a"]}; tsh!the arguments are not JSON: {"a; !not the name of a tool: x y` {
		t.Error(got)
	}
	out, err = next()
	var f *modelwire.Failure
	if got := out.kinds(); got != "lifecycle start delta" || !errors.As(err, &f) || f.Status != 503 || f.RetryAfterMS != 10 {
		t.Errorf("%s, %v", got, err)
	}
	if out, err = next(); out.kinds() != "start delta" || !errors.Is(err, model.ErrDrop) {
		t.Errorf("%s, %v", out.kinds(), err)
	}
	if out, err = next(); out.kinds() != "start delta" || !errors.As(err, &f) || f.Class != modelwire.ClassInterrupted {
		t.Errorf("%s, %v", out.kinds(), err)
	}
	for range 3 {
		out, err = next()
		must(t, err)
		if m := out.message(t); m.Stop != modelwire.StopLength || m.Content[0].Text != "done" {
			t.Errorf("%+v", m)
		}
	}
	must(t, os.Remove(path+".at"))
	if out, err = next(); err != nil || !strings.Contains(out.kinds(), "reasoning") {
		t.Errorf("from the start: %s, %v", out.kinds(), err)
	}
}

func TestScriptEnds(t *testing.T) {
	path := write(t, `{"block":"one"}`, `{"answer":{"text":"a"}}`)
	_, err := ask(t.Context(), "debug/script", []modelwire.Message{user("x")}, scripted(path))
	must(t, err)
	_, err = ask(t.Context(), "debug/script", []modelwire.Message{user("x")}, scripted(path))
	if !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "request 2") {
		t.Error(err)
	}
}

func TestExpectations(t *testing.T) {
	for _, e := range []string{
		`{"messages":2}`, `{"last":"no"}`, `{"tools":[]}`, `{"tools":["a"]}`, `{"contains":["goodbye"]}`, `{"lacks":["hello"]}`,
	} {
		path := write(t, `{"block":"one"}`, `{"expect":`+e+`}`, `{"answer":{"text":"a"}}`)
		_, err := ask(t.Context(), "debug/script", []modelwire.Message{user("hello")}, scripted(path))
		var f *modelwire.Failure
		if !errors.As(err, &f) || f.ProviderCode != "unexpected_request" || !strings.Contains(f.Message, "line 2") {
			t.Errorf("%s: %v", e, err)
		}
	}
}

// Each request gets a block of its own, whoever asks at the same time.
func TestBlocksAreTakenOnce(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, `{"block":"b"}`, `{"answer":{"text":"`+strings.Repeat("x", i+1)+`"}}`)
	}
	path := write(t, lines...)
	var mu sync.Mutex
	seen := map[int]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				out, err := ask(context.Background(), "debug/script", []modelwire.Message{user("x")}, scripted(path))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[len(out.message(t).Content[0].Text)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 40 {
		t.Errorf("%d of 40 blocks", len(seen))
	}
}

// What waits gives up with its context.
func TestScriptIsCancelled(t *testing.T) {
	for _, item := range []string{`{"fault":"hang"}`, `{"delay_ms":3600000}`} {
		path := write(t, `{"block":"one"}`, `{"type":"delta","text":"a"}`, item)
		ctx, cancel := context.WithCancel(t.Context())
		g := &modelwire.Generate{Model: "debug/script", Messages: []modelwire.Message{user("x")}, Options: map[string]string{"script": path}}
		out := &sink{seen: func(f modelwire.Frame) {
			if _, ok := f.(*modelwire.Delta); ok {
				cancel()
			}
		}}
		if err := (Driver{}).Generate(ctx, nil, provider.Secret{}, g, out); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", item, err)
		}
	}
}

func TestWrongScripts(t *testing.T) {
	dir := t.TempDir()
	for name, path := range map[string]string{
		"none": "", "a relative path": "script", "no file": dir + "/none", "a directory": dir, "nothing in it": write(t), "no block": write(t, `{"delay_ms":1}`),
		"no JSON": write(t, `{"block":"a"}`, "hello secret"), "an unknown item": write(t, `{"block":"a"}`, `{"secret":1}`),
		"two items": write(t, `{"block":"a"}`, `{"delay_ms":1,"fault":"drop"}`), "a long delay": write(t, `{"block":"a"}`, `{"delay_ms":3600001}`),
		"an unknown fault": write(t, `{"block":"a"}`, `{"fault":"secret"}`), "a failure that is none": write(t, `{"block":"a"}`, `{"fail":{"code":"EIO"}}`),
		"a done frame": write(t, `{"block":"a"}`, `{"type":"done","status":"ok"}`), "a wrong frame": write(t, `{"block":"a"}`, `{"type":"start","model":"secret secret"}`),
		"an unknown frame":             write(t, `{"block":"a"}`, `{"type":"weather"}`),
		"a block behind the last":      write(t, `{"block":"a","repeat":true}`, `{"block":"b"}`),
		"a repeat of something else":   write(t, `{"block":"a"}`, `{"delay_ms":1,"repeat":true}`),
		"a place that is no directory": "/dev/null/x", "a link": link(t, write(t, `{"block":"a"}`)),
	} {
		_, err := ask(t.Context(), "debug/script", []modelwire.Message{user("x")}, scripted(path))
		if !errdefs.Is(err, errdefs.Invalid) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if path != "" {
			if _, err := os.Lstat(path + ".at"); err == nil {
				t.Errorf("%s: a block was taken", name)
			}
		}
	}
}

func link(t *testing.T, to string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(to, at))
	return at
}

func FuzzScript(f *testing.F) {
	f.Add([]byte("{\"block\":\"a\"}\n{\"type\":\"delta\",\"text\":\"a\"}\n{\"answer\":{\"text\":\"b\",\"calls\":[{\"name\":\"x\",\"arguments\":\"y\"}]}}\n"))
	f.Add([]byte("{\"block\":\"a\",\"repeat\":true}\n{\"expect\":{\"tools\":[]}}\n{\"fail\":{\"code\":\"EIO\",\"phase\":\"body\",\"class\":\"other\"}}\n"))
	f.Add([]byte("{\"block\":\"a\"}\n{\"answer\":{\"text\":\"\",\"stop\":\"never\"}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		blocks, err := parseScript(data)
		if err != nil {
			if blocks != nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, %v", blocks, err)
			}
			return
		}
		for _, b := range blocks {
			p := &player{ctx: context.Background(), g: &modelwire.Generate{Model: "debug/script", Messages: []modelwire.Message{user("x")}}, out: &sink{}}
			for _, it := range b.items {
				if it.Delay != nil || it.Fault != "" {
					continue
				}
				if p.play(it) != nil {
					break
				}
			}
		}
	})
}
