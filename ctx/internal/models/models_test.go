package models

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/config"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/tree"
	"cortexfs.org/libctx/wire"
)

// world is a tree whose model socket a test serves.
type world struct {
	t *testing.T
	caller.Caller
	out, err bytes.Buffer
	stop     chan os.Signal
	over     chan struct{} // the last one served has its answer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	top := t.TempDir()
	w := &world{t: t, stop: make(chan os.Signal, 2)}
	w.Layout = paths.New(paths.Env{UID: os.Geteuid(), Home: top}, filepath.Join(top, "tree"))
	w.Layout.Runtime = filepath.Join(t.TempDir(), "run")
	w.Layout.Locks = filepath.Join(w.Layout.Runtime, "lock")
	if err := errors.Join(os.Chmod(filepath.Dir(w.Layout.Runtime), 0o700), os.Mkdir(w.Layout.Runtime, 0o700)); err != nil {
		t.Fatal(err)
	}
	w.Printer = &output.Printer{Out: &w.out, Err: &w.err}
	w.In = strings.NewReader("")
	w.Interrupts = func() (<-chan os.Signal, func()) { return w.stop, func() {} }
	if _, err := tree.Init(w.Layout, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// serve answers one request: the handler gets it as it came and the connection.
func (w *world) serve(answer func(line string, r modelwire.Request, c net.Conn)) {
	w.t.Helper()
	if w.over != nil {
		<-w.over
	}
	l, err := net.Listen("unix", w.Layout.ModelSocket())
	if err != nil {
		w.t.Fatal(err)
	}
	over := make(chan struct{})
	w.over = over
	go func() {
		defer close(over)
		c, err := l.Accept()
		l.Close() // and its file is gone
		if err != nil {
			return
		}
		defer c.Close()
		line, err := wire.NewLines(c, libctx.MaxModelFrame).Next()
		if err != nil {
			w.t.Error(err)
			return
		}
		r, err := modelwire.DecodeRequest(line)
		if err != nil {
			w.t.Errorf("%s: %v", line, err)
			return
		}
		answer(string(line), r, c)
	}()
	w.t.Cleanup(func() { l.Close(); <-over })
}

// say serves one request with fixed frames.
func (w *world) say(frames ...string) {
	w.t.Helper()
	w.serve(func(_ string, _ modelwire.Request, c net.Conn) {
		for _, f := range frames {
			if _, err := fmt.Fprintln(c, f); err != nil {
				return
			}
		}
	})
}

func (w *world) run(model string, raw bool, words ...string) error {
	w.out.Reset()
	w.err.Reset()
	return Run(context.Background(), &w.Caller, model, words, raw)
}

const (
	start   = `{"type":"start","model":"debug/echo"}`
	message = `{"type":"message","content":[{"type":"text","text":"Hello"}],"stop":"end"}`
	done    = `{"type":"done","status":"ok"}`
)

func TestRunPrintsText(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		frames []string
		out    string
		err    string
	}{
		"pieces":         {[]string{start, `{"type":"delta","text":"Hel"}`, `{"type":"delta","text":"lo"}`, message, done}, "Hello\n", ""},
		"whole":          {[]string{start, message, done}, "Hello\n", ""},
		"half":           {[]string{start, `{"type":"delta","text":"Hel"}`, message, done}, "Hello\n", ""},
		"other pieces":   {[]string{start, `{"type":"delta","text":"Bye"}`, message, done}, "Bye\nHello\n", ""},
		"unknown frames": {[]string{`{"type":"news"}`, start, `{"type":"news","a":1}`, message, done}, "Hello\n", ""},
		"nothing":        {[]string{start, `{"type":"message","content":[],"stop":"length"}`, done}, "", "the answer ended: length\n"},
		"hostile": {[]string{start, `{"type":"delta","text":"a\u001b[2Jb"}`, `{"type":"message","content":[{"type":"text","text":"a\u001b[2Jb"}],"stop":"end"}`, done},
			"a\\x1b[2Jb\n", ""},
		"calls": {[]string{start, `{"type":"message","content":[{"type":"tool_call","call":"call-1","name":"fs.read","arguments":{"path":"a\u202eb"}}],"stop":"tool_calls"}`, done},
			"", "call fs.read "},
	} {
		w.say(c.frames...)
		if err := w.run("main", false, "hi"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.out != w.out.String() && name != "hostile" || !strings.HasPrefix(w.err.String(), c.err) {
			t.Errorf("%s: stdout %q, stderr %q", name, w.out.String(), w.err.String())
		}
		if strings.ContainsAny(w.out.String()+w.err.String(), "\x1b\u202e") {
			t.Errorf("%s: not inert: %q %q", name, w.out.String(), w.err.String())
		}
	}
}

// The request carries what the model's files say, and nothing else.
func TestRequest(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.Layout.Root, "model/debug/echo.d")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "default"), []byte("a=1\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "effort"), []byte("low\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "max_output"), []byte("77\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	const files = `"max_output":77,"effort":"low","options":{"a":"1"}`
	for _, c := range []struct {
		stdin string
		words []string
		want  string
	}{
		{"", []string{"two", "words", "--x"}, `"messages":[{"role":"user","content":[{"type":"text","text":"two words --x"}]}],` + files},
		{"from stdin\n", nil, `"messages":[{"role":"user","content":[{"type":"text","text":"from stdin\n"}]}],` + files},
		{"from stdin", []string{"-"}, `"messages":[{"role":"user","content":[{"type":"text","text":"from stdin"}]}],` + files},
		{"", []string{`{"messages":[]}`}, `"messages":[{"role":"user","content":[{"type":"text","text":"{\"messages\":[]}"}]}],` + files},
		{` {"messages":[{"role":"user","content":[{"type":"text","text":"j"}]}],"effort":"high"}`, nil,
			`"messages":[{"role":"user","content":[{"type":"text","text":"j"}]}],"max_output":77,"effort":"high","options":{"a":"1"}`},
		{`{"op":"generate","version":1,"model":"debug/echo","messages":[{"role":"user","content":[{"type":"text","text":"j"}]}],"max_output":5,"options":{}}`, []string{"-"},
			`"messages":[{"role":"user","content":[{"type":"text","text":"j"}]}],"max_output":5,"effort":"low"`},
	} {
		w.In = strings.NewReader(c.stdin)
		var got string
		served := make(chan struct{})
		w.serve(func(line string, _ modelwire.Request, conn net.Conn) {
			got = line
			close(served)
			fmt.Fprintln(conn, start+"\n"+message+"\n"+done)
		})
		if err := w.run("main", false, c.words...); err != nil {
			t.Errorf("%q %q: %v", c.stdin, c.words, err)
			continue
		}
		<-served
		if want := `{"op":"generate","version":1,"model":"debug/echo",` + c.want; !strings.HasPrefix(got, want) {
			t.Errorf("sent %s\nwant %s", got, want)
		}
		if isJSON := strings.Contains(w.out.String(), `"type":"start"`); isJSON != strings.HasPrefix(strings.TrimSpace(c.stdin), "{") {
			t.Errorf("%q: printed %q", c.stdin, w.out.String())
		}
	}
}

func TestRawPrintsFramesExactly(t *testing.T) {
	w := newWorld(t)
	frames := []string{start, `{"type":"news","a":1}`, `{"type":"delta","text":"Hello"}`, message, `{"type":"usage","input":3}`, done}
	w.say(frames...)
	if err := w.run("debug/echo", true, "hi"); err != nil || w.out.String() != strings.Join(frames, "\n")+"\n" {
		t.Errorf("%v, %q", err, w.out.String())
	}
}

func TestRefusedInput(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		model, stdin string
		words        []string
		kind         errdefs.Kind
	}{
		{"none", "", []string{"x"}, errdefs.NotFound},
		{"debug/none", "", []string{"x"}, errdefs.NotFound},
		{"a/b/c", "", []string{"x"}, errdefs.Invalid},
		{"main", "", nil, errdefs.Invalid},
		{"main", "\xff", nil, errdefs.Invalid},
		{"main", "{", nil, errdefs.Invalid},
		{"main", "{}", nil, errdefs.Invalid},
		{"main", `{"messages":[{"role":"user","content":[{"type":"text","text":"j"}]}],"x":1}`, nil, errdefs.Invalid},
		{"main", `{"model":"debug/tools","messages":[{"role":"user","content":[{"type":"text","text":"j"}]}]}`, nil, errdefs.Invalid},
		{"main", `{"op":"probe","messages":[{"role":"user","content":[{"type":"text","text":"j"}]}]}`, nil, errdefs.Invalid},
	} {
		w.In = strings.NewReader(c.stdin)
		w.Config = config.Config{Stdin: c.stdin == ""}
		// Nothing serves the socket: what is refused gets no further.
		if err := w.run(c.model, false, c.words...); !errdefs.Is(err, c.kind) {
			t.Errorf("%s %q %q: %v", c.model, c.stdin, c.words, err)
		}
	}
}

func TestFailedAnswers(t *testing.T) {
	w := newWorld(t)
	const failed = `{"type":"error","code":"EACCES","phase":"provider","class":"auth","message":"wrong key"}`
	for name, c := range map[string]struct {
		frames []string
		kind   errdefs.Kind
		text   string
	}{
		"error":     {[]string{failed, `{"type":"done","status":"error"}`}, errdefs.Denied, "wrong key"},
		"torn":      {[]string{start, `{"type":"delta","text":"Hel"}`}, errdefs.Interrupted, "closed the connection"},
		"nothing":   {nil, errdefs.Interrupted, "closed the connection"},
		"not JSON":  {[]string{"hello"}, errdefs.Protocol, "answer of the model"},
		"order":     {[]string{message}, errdefs.Protocol, "answer of the model"},
		"lying end": {[]string{start, done}, errdefs.Protocol, "answer of the model"},
	} {
		for _, raw := range []bool{false, true} {
			w.say(c.frames...)
			err := w.run("main", raw, "hi")
			if !errdefs.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", name, err)
			}
			if name == "error" && !strings.Contains(errdefs.HintOf(err), "ctx provider key") {
				t.Errorf("hint %q", errdefs.HintOf(err))
			}
			if name == "torn" && !raw && w.out.String() != "Hel\n" {
				t.Errorf("the last line is not ended: %q", w.out.String())
			}
		}
	}
}

// Ctrl+C closes the connection, which cancels the request.
func TestInterrupt(t *testing.T) {
	w := newWorld(t)
	ended := make(chan error, 1)
	w.serve(func(_ string, _ modelwire.Request, c net.Conn) {
		fmt.Fprintln(c, start+"\n"+`{"type":"delta","text":"Hel"}`)
		w.stop <- os.Interrupt
		_, err := c.Read(make([]byte, 1))
		ended <- err
	})
	if err := w.run("main", false, "hi"); !errors.Is(err, caller.ErrInterrupt) || errdefs.KindOf(err).Exit() != 130 {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("the server sees %v", err)
	}
}

func TestNobodyServes(t *testing.T) {
	w := newWorld(t)
	w.Config.Exe = filepath.Join(t.TempDir(), "ctx") // beside no ctxd
	err := w.run("main", false, "hi")
	if !errdefs.Is(err, errdefs.Unavailable) && !errdefs.Is(err, errdefs.Denied) {
		t.Error(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := os.Lchown(w.Layout.Root, 60001, 60001); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(context.Background(), &w.Caller, &modelwire.Detect{}); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("models of another's tree: %v", err)
	}
}

func TestListAndShow(t *testing.T) {
	w := newWorld(t)
	if err := errors.Join(
		tree.AddModels(w.Layout, []tree.ModelSpec{{ID: "openai/gpt-4o", Driver: "openai.chat", MaxOutput: 100}}),
		tree.SetAlias(w.Layout, "fast", "openai/gpt-4o", true),
		os.WriteFile(filepath.Join(w.Layout.Root, "model/debug/tools.d/limit"), []byte("x\n"), 0o644),
		os.Symlink("gone/m", filepath.Join(w.Layout.Root, "model/old")),
		List(&w.Caller),
	); err != nil {
		t.Fatal(err)
	}
	want := "debug/echo\tdebug\t131072\tunknown\tchat stream\tmain\n" +
		"debug/script\tdebug\t131072\tunknown\tchat stream tool_call_syntax reasoning\t\n" +
		"debug/tools\t\tunknown\tunknown\t\t\n" +
		"openai/gpt-4o\topenai.chat\tunknown\t100\t\tfast\n"
	if got := w.out.String(); !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
	for _, word := range []string{"model/debug/tools.d/limit", "alias old: leads to gone/m"} {
		if !strings.Contains(w.err.String(), word) {
			t.Errorf("no word of %s: %s", word, w.err.String())
		}
	}
	w.out.Reset()
	w.JSON = true
	if err := Show(&w.Caller, "fast"); err != nil {
		t.Fatal(err)
	}
	if got := w.out.String(); got != `{"model":"openai/gpt-4o","driver":"openai.chat","cap":[],"limit":null,"max_output":100,"aliases":["fast"],`+
		`"error":"","effort":"auto","default":{},"fallback":[],"price":"$2.50 in, $10.00 out for a million tokens","agents":[]}`+"\n" {
		t.Errorf("%s", got)
	}
}

func TestAlias(t *testing.T) {
	w := newWorld(t)
	steps := []error{
		Alias(&w.Caller, "quick", "debug/tools", AliasOptions{}),
		Alias(&w.Caller, "quick", "", AliasOptions{Remove: true}),
		Alias(&w.Caller, "mine", "debug/tools", AliasOptions{Own: true}),
		Alias(&w.Caller, "mine", "", AliasOptions{Own: true, Remove: true}),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	for _, o := range []AliasOptions{{}, {Remove: true}} {
		if err := Alias(&w.Caller, "quick", map[bool]string{true: "debug/echo"}[o.Remove], o); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
