package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepeatedCall: a call that is made again, because the host of its own run
// died, has its name as every other.
func TestRepeatedCall(t *testing.T) {
	w := newWorld(t)
	w.serve(answering(start,
		`{"type":"tool_policy","id":"RUN.2","run":"RUN","call":"c1","allowed":true,"via":"tsh","name":"fs.read"}`,
		`{"type":"tool_result","id":"RUN.3","run":"RUN","call":"c1","name":"tsh","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		`{"type":"tool_policy","id":"RUN.4","run":"RUN","call":"c2","allowed":true}`,
		`{"type":"tool_result","id":"RUN.5","run":"RUN","call":"c2","name":"fs.list","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		`{"type":"tool_result","id":"RUN.6","run":"RUN","call":"c3","name":"tsh","status":"error","content":"not executed","truncated":false,"duration_ms":0}`,
		done))
	w.want(w.run("agent", "send", "coder", "x"), 0, "", "tool fs.read … 1 B 4 ms\ntool fs.list … 1 B 4 ms\ntool tsh … failed 12 B 0 ms\n")
}

// TestOnePlace: where text and the lines beside it go to one place, a line begins
// at the beginning of a line; where not, nothing is added to the text.
func TestOnePlace(t *testing.T) {
	w := newWorld(t)
	frames := []string{start, `{"type":"delta","run":"RUN","text":"Look"}`,
		`{"type":"message","id":"RUN.2","run":"RUN","role":"assistant","content":[{"type":"text","text":"Look"}]}`,
		`{"type":"tool_call","id":"RUN.3","run":"RUN","call":"c1","name":"fs.read","arguments":{"path":"x"}}`,
		`{"type":"tool_result","id":"RUN.4","run":"RUN","call":"c1","name":"fs.read","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		`{"type":"delta","run":"RUN","text":"See"}`,
		`{"type":"tool_call","id":"RUN.5","run":"RUN","call":"c2","name":"fs.read","arguments":{"path":"y"}}`,
		`{"type":"tool_result","id":"RUN.6","run":"RUN","call":"c2","name":"fs.read","status":"ok","content":"x","truncated":false,"duration_ms":4}`,
		strings.Replace(done, "RUN.9", "RUN.10", 1)}
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	send := func(out, errs *os.File) {
		w.serve(answering(frames...))
		if code := w.runOn(strings.NewReader(""), out, errs, "agent", "send", "coder", "x"); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	want := func(name, text string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v; want %q", name, got, err, text)
		}
	}
	send(open("both"), open("both")) // opened twice, one file
	want("both", "Look\ntool fs.read x … 1 B 4 ms\nSee\ntool fs.read y … 1 B 4 ms\n")
	send(open("out"), open("err"))
	want("out", "Look\nSee\n")
	want("err", "tool fs.read x … 1 B 4 ms\ntool fs.read y … 1 B 4 ms\n")

	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	send(write, write)
	write.Close()
	if got, err := io.ReadAll(read); err != nil || string(got) != "Look\ntool fs.read x … 1 B 4 ms\nSee\ntool fs.read y … 1 B 4 ms\n" {
		t.Errorf("pipe: %q, %v", got, err)
	}
}

// TestNeverBegun: whatever a client can know its run by, the end of one that never
// began is the end of the command; that of somebody else's is not.
func TestNeverBegun(t *testing.T) {
	w := newWorld(t)
	queued := `{"type":"queued","run":"RUN","client_id":"ID","position":1}`
	failed := []string{`{"type":"error","run":"RUN","client_id":"ID","code":"ENOSPC","message":"full"}`, `{"type":"done","run":"RUN","client_id":"ID","status":"error"}`}
	for _, c := range []struct {
		frames []string
		code   int
		err    string
	}{
		{[]string{queued, neverBegun}, 130, "queued: 1 before this one\nctx: agent %s: the run was cancelled\n"},
		{[]string{queued, strings.Replace(neverBegun, `"client_id":"ID",`, "", 1)}, 130, "queued: 1 before this one\nctx: agent %s: the run was cancelled\n"},
		{[]string{neverBegun}, 130, "ctx: agent %s: the run was cancelled\n"},
		{append([]string{queued}, failed...), 1, "queued: 1 before this one\nctx: agent %s: full\n"},
		{failed, 1, "ctx: agent %s: full\n"},
		{[]string{strings.NewReplacer("RUN", "01JDZ0000000000000000000BB", `"ID"`, `"other"`).Replace(neverBegun), start, done}, 0, ""},
	} {
		w.serve(answering(c.frames...), answering(c.frames...))
		for _, command := range []string{"send", "tsh"} {
			err := c.err
			if err != "" {
				err = fmt.Sprintf(err, command)
			}
			w.want(w.run("agent", command, "coder", "x"), c.code, "", err)
		}
	}
}
