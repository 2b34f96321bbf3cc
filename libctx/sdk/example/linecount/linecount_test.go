package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/sdk"
	"cortexfs.org/libctx/wire"
)

const run = "01KB9QZ3M8T5V2N7X4C6D1E0FG"

// start is one start of an agent: standard input in, standard output out.
type start func(step int, stdin []byte) (stdout []byte, err error)

// agents are the two programs, which every case is run on.
var agents = map[string]start{
	"Go": func(step int, stdin []byte) ([]byte, error) {
		var out bytes.Buffer
		l := sdk.Launch{Run: run, Step: strconv.Itoa(step), Stdin: bytes.NewReader(stdin), Stdout: &out}
		err := l.Serve(agent)
		return out.Bytes(), err
	},
	"Python": func(step int, stdin []byte) ([]byte, error) {
		cmd := exec.Command("../linecount.py")
		cmd.Env = []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + os.Getenv("HOME"),
			"CTX_SESSION=" + os.Getenv("CTX_SESSION"), "CTX_RUN_ID=" + run, "CTX_STEP=" + strconv.Itoa(step),
		}
		cmd.Stdin = bytes.NewReader(stdin)
		var problem bytes.Buffer
		cmd.Stderr = &problem
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, &problem)
		}
		return out, err
	},
}

// home gives the agents a home of their own for this test.
func home(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("CTX_SESSION", "default")
}

// drive is a host: it starts the agent step by step, answers its calls and
// returns what it said.
func drive(t *testing.T, begin start, answer func(*wire.ToolCall) envelope.Observation) string {
	t.Helper()
	inv := envelope.Invocation{Run: run, Input: "count", HistoryMessages: "[]"}
	for ; inv.Step < libctx.MaxAgentStarts; inv.Step++ {
		stdin, err := inv.Encode()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := begin(inv.Step, stdin)
		if err != nil {
			t.Fatal(err)
		}
		out := envelope.NewOutput(run)
		var said []string
		for line := range bytes.Lines(stdout) {
			f, err := out.Line(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if m, ok := f.(*wire.Message); ok {
				said = append(said, m.Content[0].Text)
			}
		}
		call := out.ToolCall()
		if call == nil {
			return strings.Join(said, "|")
		}
		if inv.Step == libctx.MaxAgentCalls {
			t.Fatal("one call too many")
		}
		o := answer(call)
		o.ToolCallID, o.Name = call.Call, call.Name
		if o.Status == "" {
			o.Status = "ok"
		}
		inv.Observation = &o
	}
	t.Fatal("no answer")
	return ""
}

// entry is a line of fs.list.
func entry(kind, name string) string {
	return kind + "\t0644\t12\t2026-11-30T12:00:00Z\t/workspace/" + name + "\n"
}

func TestAnswers(t *testing.T) {
	read := map[string]envelope.Observation{
		"/workspace/README.md":  {Content: "     1\t# Hello\n     2\t\n     3\tworld\n"},
		"/workspace/long.txt":   {Content: "     1\ta\n     2\tb\n[lines 1-2 of 5000; next: start=3]", Truncated: true},
		"/workspace/wide.txt":   {Content: "     1\taaa\n[line 1 of 7, cut after 51200 bytes; next: start=2]", Truncated: true},
		"/workspace/fake.txt":   {Content: "     1\t[lines 1-2 of 99; next: start=3]"},
		"/workspace/empty":      {Content: "[empty file]"},
		"/workspace/nothing":    {Content: ""},
		`"/workspace/a\nb.txt"`: {Content: "     1\tx\n"},
		"/workspace/a.bin":      {Status: "error", Content: "/workspace/a.bin: is not text\nmore"},
		"/workspace/ümlaut.txt": {Content: "     1\tx\n     2\ty"},
	}
	many := strings.Repeat(entry("file", "a.bin"), 200)
	for name, c := range map[string]struct {
		list envelope.Observation
		want string
	}{
		"a README among others":  {envelope.Observation{Content: entry("file", "long.txt") + entry("file", "README.md") + entry("dir", "src")}, "/workspace has 3 entries; /workspace/README.md has 3 lines."},
		"no README":              {envelope.Observation{Content: entry("dir", "README.md") + entry("link", "x") + entry("file", "long.txt")}, "/workspace has 3 entries; /workspace/long.txt has 5000 lines."},
		"one long line":          {envelope.Observation{Content: entry("file", "wide.txt")}, "/workspace has 1 entry; /workspace/wide.txt has 7 lines."},
		"a line like a note":     {envelope.Observation{Content: entry("file", "fake.txt")}, "/workspace has 1 entry; /workspace/fake.txt has 1 line."},
		"an empty file":          {envelope.Observation{Content: entry("file", "empty")}, "/workspace has 1 entry; /workspace/empty has 0 lines."},
		"an odd result":          {envelope.Observation{Content: entry("file", "nothing")}, "/workspace has 1 entry; I could not tell the lines of /workspace/nothing."},
		"a name in quotes":       {envelope.Observation{Content: "file\t0644\t1\t2026-11-30T12:00:00Z\t\"/workspace/a\\nb.txt\"\n"}, `/workspace has 1 entry; "/workspace/a\nb.txt" has 1 line.`},
		"not ASCII":              {envelope.Observation{Content: entry("file", "ümlaut.txt")}, "/workspace has 1 entry; /workspace/ümlaut.txt has 2 lines."},
		"first not text":         {envelope.Observation{Content: entry("file", "a.bin") + entry("file", "long.txt")}, "/workspace has 2 entries; /workspace/long.txt has 5000 lines."},
		"nothing is text":        {envelope.Observation{Content: many + "[200 of 4000 entries; next: after=x]", Truncated: true}, "/workspace has at least 4000 entries; no file could be read, the last was /workspace/a.bin: /workspace/a.bin: is not text"},
		"an empty directory":     {envelope.Observation{Content: "[empty directory]"}, "/workspace has 0 entries and no regular file."},
		"only directories":       {envelope.Observation{Content: entry("dir", "src")}, "/workspace has 1 entry and no regular file."},
		"an empty listing":       {envelope.Observation{}, "/workspace has 0 entries and no regular file."},
		"a refused listing":      {envelope.Observation{Status: "error", Content: "not permitted"}, "I could not list /workspace: not permitted"},
		"an error without words": {envelope.Observation{Status: "error"}, "I could not list /workspace: "},
	} {
		for lang, begin := range agents {
			t.Run(name+"/"+lang, func(t *testing.T) {
				home(t)
				got := drive(t, begin, func(call *wire.ToolCall) envelope.Observation {
					var args struct {
						Path    string `json:"path"`
						Limit   int    `json:"limit"`
						Numbers bool   `json:"numbers"`
					}
					if err := wire.Object(call.Arguments, &args); err != nil {
						t.Fatal(err)
					}
					if call.Name == "fs.list" {
						if args.Path != workspace || args.Limit != maxShown {
							t.Errorf("lists with %s", call.Arguments)
						}
						return c.list
					}
					o, ok := read[args.Path]
					if !ok || call.Name != "fs.read" || !args.Numbers {
						t.Errorf("calls %s with %s", call.Name, call.Arguments)
					}
					return o
				})
				if got != c.want {
					t.Errorf("said %q\nnot  %q", got, c.want)
				}
			})
		}
	}
}

// What can not be right ends the step with an error, not with an answer.
func TestFailures(t *testing.T) {
	reading := envelope.Invocation{
		Run: run, Step: 2, Input: "count", HistoryMessages: "[]",
		Observation: &envelope.Observation{ToolCallID: "read-1", Name: "fs.read", Status: "ok", Content: "     1\ta\n"},
	}
	stdin, err := reading.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for lang, begin := range agents {
		for name, c := range map[string]struct {
			notes string
			step  int
			stdin []byte
		}{
			"no notes":                {"", 2, stdin},
			"notes of another run":    {"01KB9QZ3M8T5V2N7X4C6D1E0FH\nfound\n/workspace/a", 2, stdin},
			"notes without a file":    {run + "\nfound", 2, stdin},
			"another step":            {run + "\nfound\n/workspace/a", 1, stdin},
			"another run":             {run + "\nfound\n/workspace/a", 2, bytes.Replace(stdin, []byte(run), []byte("run-1"), 1)},
			"another schema":          {run + "\nfound\n/workspace/a", 2, bytes.Replace(stdin, []byte("/v1"), []byte("/v9"), 1)},
			"no invocation":           {"", 2, nil},
			"an invocation cut short": {"", 2, stdin[:len(stdin)/2]},
			"too long an invocation":  {"", 2, bytes.Repeat([]byte(" "), libctx.MaxEnvelope+1)},
		} {
			t.Run(name+"/"+lang, func(t *testing.T) {
				home(t)
				if c.notes != "" {
					dir := filepath.Join(os.Getenv("HOME"), ".cache", "linecount")
					if err := os.MkdirAll(dir, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, "default"), []byte(c.notes), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				stdout, err := begin(c.step, c.stdin)
				if err == nil || len(stdout) != 0 {
					t.Errorf("wrote %q, %v", stdout, err)
				}
				if err != nil && strings.Contains(err.Error(), "Traceback") {
					t.Error(err)
				}
			})
		}
	}
}
