package sdk_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sdk"
)

const run = "01KBDZ5T0000000000000000R1"

// step runs one step of an agent on an invocation and returns its output.
func step(t *testing.T, inv envelope.Invocation, agent sdk.Agent) (string, error) {
	t.Helper()
	inv.Run = run
	body, err := inv.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	l := sdk.Launch{Run: run, Step: strconv.Itoa(inv.Step), Stdin: bytes.NewReader(body), Stdout: &out}
	err = l.Serve(agent)
	return out.String(), err
}

func TestFrames(t *testing.T) {
	out, err := step(t, envelope.Invocation{Input: "hello"}, func(s *sdk.Step) error {
		return errors.Join(
			s.Delta("a\x00\xff"),
			s.Message("b \"c\""),
			s.Recoverable(errdefs.New(errdefs.IO, "disk")),
			s.Recoverable(errors.New("odd")),
			s.Call("call-1", "tsh", sdk.Words("fs.read", s.Input)),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`{"type":"delta","run":"R","text":"a␀�"}
{"type":"message","run":"R","role":"assistant","content":[{"type":"text","text":"b \"c\""}]}
{"type":"error","run":"R","code":"EIO","message":"disk","recoverable":true}
{"type":"error","run":"R","code":"EFAULT","message":"odd","recoverable":true}
{"type":"tool_call","run":"R","id":"call-1","name":"tsh","arguments":{"args":["fs.read","hello"]}}
`, `"R"`, `"`+run+`"`)
	if out != want {
		t.Errorf("got\n%swant\n%s", out, want)
	}
}

func TestNothingAfterACall(t *testing.T) {
	out, err := step(t, envelope.Invocation{}, func(s *sdk.Step) error {
		if err := s.Call("c", "fs.list", struct{}{}); err != nil {
			t.Error(err)
		}
		for _, err := range []error{s.Delta("a"), s.Message("a"), s.Recoverable(errors.New("a")), s.Call("d", "fs.list", struct{}{})} {
			if !errors.Is(err, sdk.ErrCalled) {
				t.Errorf("got %v", err)
			}
		}
		return nil
	})
	if err != nil || strings.Count(out, "\n") != 1 {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestRefusedFrameLeavesTheStepUsable(t *testing.T) {
	out, err := step(t, envelope.Invocation{}, func(s *sdk.Step) error {
		for name, err := range map[string]error{
			"long message":     s.Message(strings.Repeat("a", libctx.MaxAgentFrame)),
			"no call id":       s.Call("", "tsh", sdk.Words("ls")),
			"bad tool":         s.Call("c", "../tsh", sdk.Words("ls")),
			"no object":        s.Call("c", "tsh", 5),
			"nothing":          s.Call("c", "tsh", nil),
			"not encodable":    s.Call("c", "tsh", func() {}),
			"too many words":   s.Call("c", "tsh", sdk.Words(make([]string, 65)...)),
			"too long a words": s.Call("c", "tsh", sdk.Words(strings.Repeat("a", 8193))),
		} {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		return s.Message("short")
	})
	if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "short") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestLaunchIsChecked(t *testing.T) {
	inv := envelope.Invocation{Run: run}
	good, err := inv.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]sdk.Launch{
		"another run":     {Run: "other", Step: "0", Stdin: bytes.NewReader(good)},
		"no run":          {Step: "0", Stdin: bytes.NewReader(good)},
		"another step":    {Run: run, Step: "1", Stdin: bytes.NewReader(good)},
		"an odd step":     {Run: run, Step: "00", Stdin: bytes.NewReader(good)},
		"no invocation":   {Run: run, Step: "0", Stdin: strings.NewReader("")},
		"more than one":   {Run: run, Step: "0", Stdin: bytes.NewReader(append(good, good...))},
		"endless garbage": {Run: run, Step: "0", Stdin: endless{}},
	} {
		l.Stdout = &bytes.Buffer{}
		err := l.Serve(func(*sdk.Step) error { t.Errorf("%s: the agent ran", name); return nil })
		if !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestBrokenPipeIsAnError(t *testing.T) {
	inv := envelope.Invocation{Run: run}
	body, err := inv.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	l := sdk.Launch{Run: run, Step: "0", Stdin: bytes.NewReader(body), Stdout: w}
	if err := l.Serve(func(s *sdk.Step) error { return s.Message("a") }); err == nil {
		t.Error("no error")
	}
}

func TestAgentErrorIsReturned(t *testing.T) {
	want := errors.New("it broke")
	_, err := step(t, envelope.Invocation{}, func(*sdk.Step) error { return want })
	if err != want {
		t.Errorf("got %v", err)
	}
}
