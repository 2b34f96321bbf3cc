package toolwire

import (
	"bytes"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const run = libctx.Run("01ARZ3NDEKTSV4RRFFQ69G5FAV")

const (
	startLine = `{"type":"start","run":"","tool":"fs.read"}` + "\n"
	textLine  = `{"type":"message","run":"","role":"tool","content":[{"type":"text","text":"hi"}]}` + "\n"
	errorLine = `{"type":"error","run":"","code":"EIO","message":"broke"}` + "\n"
	okLine    = `{"type":"done","run":"","status":"ok"}` + "\n"
	badLine   = `{"type":"done","run":"","status":"error","exit_code":3}` + "\n"
)

func TestBytesOfEncoder(t *testing.T) {
	var b bytes.Buffer
	e := NewEncoder(&b, "", "fs.read")
	for _, err := range []error{e.Text("hi"), e.Fail(errdefs.IO, "broke")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e.Exit(3)
	if err := e.Done(); err != nil {
		t.Fatal(err)
	}
	if want := startLine + textLine + errorLine + badLine; b.String() != want {
		t.Error(cmp.Diff(want, b.String()))
	}
	if err := e.Done(); !errdefs.Is(err, errdefs.Internal) {
		t.Errorf("a second done: %v", err)
	}
}

func TestRead(t *testing.T) {
	three := 3
	for name, c := range map[string]struct {
		out     string
		want    Result
		content string
	}{
		"nothing to say": {startLine + okLine, Result{Tool: "fs.read"}, ""},
		"text in parts":  {startLine + textLine + textLine + okLine, Result{Tool: "fs.read", Text: "hihi"}, "hihi"},
		"failed":         {startLine + errorLine + badLine, Result{Tool: "fs.read", ExitCode: &three}, "broke"},
		"failed late":    {startLine + textLine + errorLine + badLine, Result{Tool: "fs.read", Text: "hi", ExitCode: &three}, "hi\nbroke"},
		"truncated": {startLine + `{"type":"done","run":"","status":"ok","truncated":true}` + "\n",
			Result{Tool: "fs.read", Truncated: true}, ""},
	} {
		got, err := Read([]byte(c.out), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Content() != c.content {
			t.Errorf("%s: content %q", name, got.Content())
		}
		if failed := strings.Contains(c.out, `"error"`); (got.Failed != nil) != failed {
			t.Errorf("%s: failed %v", name, got.Failed)
		} else if failed && (got.Failed.Code != errdefs.IO || got.Failed.Message != "broke") {
			t.Errorf("%s: %v", name, got.Failed)
		}
		got.Failed = nil
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, out := range map[string]string{
		"nothing":             "",
		"plain text":          "hello\n",
		"no start":            textLine + okLine,
		"no done":             startLine + textLine,
		"two starts":          startLine + startLine + okLine,
		"two dones":           startLine + okLine + okLine,
		"after done":          startLine + okLine + textLine,
		"two errors":          startLine + errorLine + errorLine + badLine,
		"text after error":    startLine + errorLine + textLine + badLine,
		"ok with error":       startLine + errorLine + okLine,
		"error without error": startLine + badLine,
		"torn":                startLine + strings.TrimSuffix(okLine, "\n"),
		"empty line":          startLine + "\n" + okLine,
		"other run":           strings.Replace(startLine, `""`, `"x"`, 1) + okLine,
		"no tool":             `{"type":"start","run":""}` + "\n" + okLine,
		"tool is a path":      `{"type":"start","run":"","tool":"../x"}` + "\n" + okLine,
		"unknown frame":       startLine + `{"type":"delta","run":"","text":"x"}` + "\n" + okLine,
		"unknown member":      startLine + `{"type":"done","run":"","status":"ok","x":1}` + "\n",
		"duplicate member":    startLine + `{"type":"done","run":"","run":"","status":"ok"}` + "\n",
		"other case":          startLine + `{"type":"done","run":"","Status":"ok"}` + "\n",
		"role assistant":      startLine + strings.Replace(textLine, `"tool"`, `"assistant"`, 1) + okLine,
		"part not text":       startLine + strings.Replace(textLine, `"text","text"`, `"tool_call","text"`, 1) + okLine,
		"no content":          startLine + `{"type":"message","run":"","role":"tool"}` + "\n" + okLine,
		"code a word":         startLine + strings.Replace(errorLine, "EIO", "broken", 1) + badLine,
		"code unknown":        startLine + strings.Replace(errorLine, "EIO", "EWAT", 1) + badLine,
		"code lower":          startLine + strings.Replace(errorLine, "EIO", "eio", 1) + badLine,
		"no code":             startLine + strings.Replace(errorLine, "EIO", "", 1) + badLine,
		"exit code 256":       startLine + errorLine + strings.Replace(badLine, "3", "256", 1),
		"exit code -1":        startLine + errorLine + strings.Replace(badLine, "3", "-1", 1),
		"exit code 1.5":       startLine + errorLine + strings.Replace(badLine, "3", "1.5", 1),
		"not UTF-8":           startLine + strings.Replace(textLine, "hi", "\xff", 1) + okLine,
		"not an object":       startLine + "[]\n" + okLine,
		"deep":                startLine + strings.Repeat("[", 20000) + "\n" + okLine,
		"too long":            startLine + strings.Repeat(" ", libctx.MaxToolOutput) + "\n" + okLine,
	} {
		got, err := Read([]byte(out), "")
		if !errdefs.Is(err, errdefs.Protocol) {
			t.Errorf("%s: %v", name, err)
		} else if strings.ContainsAny(err.Error(), "\n\r\x00") {
			t.Errorf("%s: the error is more than a line: %q", name, err)
		}
		if d := cmp.Diff(Result{}, got); d != "" {
			t.Errorf("%s: an error came with a result: %s", name, d)
		}
	}
}

// Every kind of ours is a code, and so is every error number of the system.
func TestCodes(t *testing.T) {
	for _, code := range []errdefs.Kind{
		errdefs.Invalid, errdefs.TooBig, errdefs.Denied, errdefs.Busy, errdefs.NotFound, errdefs.Exists, errdefs.Already,
		errdefs.Protocol, errdefs.NoSpace, errdefs.IO, errdefs.Interrupted, errdefs.Cancelled, errdefs.Provider, errdefs.Timeout,
		errdefs.TooMuch, errdefs.Unsupported, errdefs.Unavailable, errdefs.Internal, "ENOTDIR", "EISDIR", "EUCLEAN", "EWOULDBLOCK",
	} {
		if _, failed, err := Decode([]byte(startLine+strings.Replace(errorLine, "EIO", string(code), 1)+badLine), ""); err != nil || failed.Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// A tool that was killed after Start has said who it is, and that is all.
func TestStart(t *testing.T) {
	var b bytes.Buffer
	e := NewEncoder(&b, "", "fs.read")
	for range 2 {
		if err := e.Start(); err != nil || b.String() != startLine {
			t.Fatalf("%q, %v", b.String(), err)
		}
	}
	if _, err := Read(b.Bytes(), ""); !errdefs.Is(err, errdefs.Protocol) || !strings.Contains(err.Error(), "was killed") {
		t.Error(err)
	}
	if err := e.Text("hi"); err != nil {
		t.Fatal(err)
	}
	if err := e.Done(); err != nil || b.String() != startLine+textLine+okLine {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestLimits(t *testing.T) {
	var b bytes.Buffer
	e := NewEncoder(&b, string(run), "big")
	if err := e.Text(strings.Repeat("é", libctx.MaxToolResultHard/2)); err != nil {
		t.Fatal(err)
	}
	if err := e.Text("x"); !errdefs.Is(err, errdefs.TooBig) {
		t.Errorf("one byte more: %v", err)
	}
	if err := e.Done(); err != nil {
		t.Fatal(err)
	}
	if r, err := Read(b.Bytes(), run); err != nil || r.Truncated || len(r.Text) != libctx.MaxToolResultHard {
		t.Errorf("%d bytes, truncated %v, %v", len(r.Text), r.Truncated, err)
	}

	// Another program may write more than ours would: it is cut.
	part := `{"type":"message","run":"","role":"tool","content":[{"type":"text","text":"` + strings.Repeat("x", 200<<10) + `"}]}` + "\n"
	r, err := Read([]byte(startLine+part+part+okLine), "")
	if err != nil || !r.Truncated || len(r.Text) > libctx.MaxToolResultHard {
		t.Errorf("%d bytes, truncated %v, %v", len(r.Text), r.Truncated, err)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "texts")
		fails := rapid.Bool().Draw(t, "fails")
		var b bytes.Buffer
		e := NewEncoder(&b, string(run), "any.tool")
		want := ""
		for _, s := range texts {
			if err := e.Text(s); err != nil {
				t.Fatal(err)
			}
			want += strings.ReplaceAll(s, "\x00", "\u2400")
		}
		if fails {
			if err := e.Fail(errdefs.Denied, "no"); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Done(); err != nil {
			t.Fatal(err)
		}
		text, failed, err := Decode(b.Bytes(), run)
		if err != nil || text != want || (failed != nil) != fails {
			t.Fatalf("%q, %v, %v", text, failed, err)
		}
		if _, _, err := Decode(b.Bytes(), ""); !errdefs.Is(err, errdefs.Protocol) {
			t.Fatalf("accepted for another run: %v", err)
		}
		for cut := range b.Len() {
			if _, err := Read(b.Bytes()[:cut], run); err == nil {
				t.Fatalf("accepted when cut after %d of %d bytes", cut, b.Len())
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(startLine + textLine + errorLine + badLine))
	f.Add([]byte(startLine + textLine + okLine))
	f.Add([]byte(startLine + okLine + "\n"))
	f.Add([]byte("hello\n"))
	f.Add([]byte(`{"type":"start","run":"","tool":"x","tool":"y"}` + "\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := Read(out, "")
		if err != nil {
			if !errdefs.Is(err, errdefs.Protocol) || r.Text != "" || r.Failed != nil || r.ExitCode != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			return
		}
		var b bytes.Buffer
		e := NewEncoder(&b, "", string(r.Tool))
		if err := e.Text(r.Text); err != nil {
			t.Fatal(err)
		}
		if r.Failed != nil {
			if err := e.Fail(r.Failed.Code, r.Failed.Message); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Done(); err != nil {
			t.Fatal(err)
		}
		again, err := Read(b.Bytes(), "")
		if err != nil || again.Content() != strings.ReplaceAll(r.Content(), "\x00", "\u2400") {
			t.Fatalf("%q reads again as %q, %v", r.Content(), again.Content(), err)
		}
	})
}
