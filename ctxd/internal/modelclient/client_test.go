package modelclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/modelwire"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/wire"
	"github.com/google/go-cmp/cmp"
)

const whole = `{"type":"start","model":"debug/echo"}
{"type":"delta","text":"hi"}
{"type":"message","content":[{"type":"text","text":"hi"}],"stop":"end"}
{"type":"done","status":"ok"}
`

func layout(t *testing.T) paths.Layout {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "mc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return paths.Layout{Root: dir, Runtime: dir, Config: dir, Secrets: dir}
}

// serve answers one request on the model socket and calls after with the
// connection.
func serve(t *testing.T, l paths.Layout, answer string, after func(*bufio.Reader)) {
	t.Helper()
	s, err := net.Listen("unix", l.ModelSocket())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { s.Close(); <-ended })
	go func() {
		defer close(ended)
		c, err := s.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		r := bufio.NewReaderSize(c, 1<<20)
		line, err := r.ReadString('\n')
		if err != nil || !strings.Contains(line, `"op":"generate"`) {
			t.Errorf("request %q %v", line, err)
		}
		io.WriteString(c, answer)
		if after != nil {
			after(r)
		}
	}()
}

func request() *modelwire.Generate {
	return &modelwire.Generate{
		Version: modelwire.Version, Model: "debug/echo",
		Messages: []modelwire.Message{{Role: "user", Content: []wire.Part{wire.Text("hi")}}},
	}
}

// collect reads an answer to its end.
func collect(a *Answer) (kinds []string, err error) {
	for {
		f, err := a.Next()
		if err != nil {
			return kinds, err
		}
		kinds = append(kinds, f.Kind())
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		kinds        []string
		want         errdefs.Kind // "" is io.EOF
	}{
		{"whole", whole, []string{"start", "delta", "message", "done"}, ""},
		{"nothing", "", nil, errdefs.Provider},
		{"cut", whole[:60], []string{"start"}, errdefs.Provider},
		{"without its end", strings.TrimSuffix(whole, "{\"type\":\"done\",\"status\":\"ok\"}\n"), []string{"start", "delta", "message"}, errdefs.Provider},
		{"no JSON", "hello\n", nil, errdefs.Protocol},
		{"out of order", `{"type":"done","status":"ok"}` + "\n", nil, errdefs.Protocol},
	} {
		l := layout(t)
		serve(t, l, c.answer, nil)
		client := New(l, "")
		a, err := client.Generate(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := collect(a)
		a.Close()
		client.Close()
		if diff := cmp.Diff(c.kinds, kinds); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if c.want == "" && !errors.Is(err, io.EOF) || c.want != "" && !errdefs.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCancel: the server learns at once that nobody waits any more, and the
// answer ends with the reason.
func TestCancel(t *testing.T) {
	l := layout(t)
	gone := make(chan error, 1)
	serve(t, l, `{"type":"start","model":"debug/echo"}`+"\n", func(r *bufio.Reader) {
		_, err := r.ReadByte()
		gone <- err
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	a, err := New(l, "").Generate(ctx, request())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Next(); err != nil {
		t.Fatal(err)
	}
	why := errdefs.New(errdefs.Cancelled, "enough")
	cancel(why)
	if err := <-gone; !errors.Is(err, io.EOF) {
		t.Errorf("the server saw %v", err)
	}
	if _, err := a.Next(); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	l := layout(t)
	if _, err := New(l, "").Generate(t.Context(), request()); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("not installed: %v", err)
	}
	if _, err := New(l, "/nowhere/ctxmodel").Generate(t.Context(), request()); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("not there: %v", err)
	}
	l.System = true
	if _, err := New(l, "/bin/true").Generate(t.Context(), request()); !errdefs.Is(err, errdefs.Unavailable) {
		t.Errorf("of root: %v", err)
	}
	bad := request()
	bad.Model = "alias"
	if _, err := New(l, "/bin/true").Generate(t.Context(), bad); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("no request: %v", err)
	}
}

// TestPrivate: without a model socket each request gets a process of its own,
// without an environment, that is gone when its answer is closed.
func TestPrivate(t *testing.T) {
	t.Setenv("SECRET_KEY", "hunter2")
	l := layout(t)
	program := filepath.Join(l.Root, "ctxmodel")
	script := `#!/bin/sh
read -r line <&3
echo $$ > ` + l.Root + `/pid
tr '\0' '\n' < /proc/$$/environ > ` + l.Root + `/environ
echo "$@" > ` + l.Root + `/argv
cat >&3 <<'END'
` + whole + `END
exec sleep 1000
`
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	client := New(l, program)
	for range 2 {
		a, err := client.Generate(t.Context(), request())
		if err != nil {
			t.Fatal(err)
		}
		if kinds, err := collect(a); len(kinds) != 4 || !errors.Is(err, io.EOF) {
			t.Errorf("%v %v", kinds, err)
		}
		a.Close()
		for file, want := range map[string]string{
			"environ": "", "argv": "serve --fd 3 --root " + l.Root + " --config " + l.Root + " --secrets " + l.Root + "\n",
		} {
			if got, err := os.ReadFile(filepath.Join(l.Root, file)); err != nil || string(got) != want {
				t.Errorf("%s: %q %v", file, got, err)
			}
		}
		pid, err := os.ReadFile(filepath.Join(l.Root, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
			t.Error("the process is still there")
		}
	}
	client.Close()
}
