// Puppet is an executable agent for tests: its input is a script of what to
// write on standard output, so that one program can be every well and every
// badly behaved agent.
//
// The input is lines; each is a command and its text:
//
//	say TEXT         a message
//	delta TEXT       a delta
//	raw TEXT         TEXT and a newline, with RUN replaced by the run id
//	tail TEXT        TEXT without a newline
//	recoverable TEXT a recoverable error
//	call TOOL JSON   yields a tool call (RUN.STEP as its id)
//	flood N          N bytes of deltas
//	line N           one line of N bytes
//	stderr N         N bytes on standard error
//	exit N           ends with that status at once
//	env              a message with the environment, one pair a line
//	envelope         a message with the whole invocation
//	early N          N bytes of deltas before the envelope is read
//	observe          a message with the observation
//	sleep            waits for the end of the world; SIGTERM is ignored if the
//	                 text is "deaf"
//	control TEXT     a message with what the run's capability socket answers to
//	                 TEXT and a newline, with RUN replaced by the run id
//	orphan FILE      starts a grandchild that appends to FILE for ever
//
// A line "--" ends a step: the first step does what stands before the first
// "--", the second what follows, and so on; the last part is done by every
// later step.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	// "early" must act before the envelope is read, so it is told by a file the
	// test puts into the workspace.
	if text, err := os.ReadFile("/workspace/.early"); err == nil {
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		flood(n)
	}
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "puppet:", err)
		os.Exit(70)
	}
	var inv struct {
		Run         string          `json:"run"`
		Step        int             `json:"step"`
		Input       string          `json:"input"`
		Observation json.RawMessage `json:"observation"`
	}
	if err := json.Unmarshal(body, &inv); err != nil {
		fmt.Fprintln(os.Stderr, "puppet:", err)
		os.Exit(70)
	}
	if inv.Run != os.Getenv("CTX_RUN_ID") || strconv.Itoa(inv.Step) != os.Getenv("CTX_STEP") {
		fmt.Fprintln(os.Stderr, "puppet: run or step differ from the environment")
		os.Exit(70)
	}
	steps := strings.Split("\n"+inv.Input+"\n", "\n--\n")
	part := steps[min(inv.Step, len(steps)-1)]
	lines := bufio.NewScanner(strings.NewReader(part))
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		verb, text, _ := strings.Cut(lines.Text(), " ")
		act(verb, text, inv.Run, inv.Step, body, inv.Observation)
	}
}

func act(verb, text, run string, step int, body []byte, observation []byte) {
	switch verb {
	case "":
	case "say":
		say(run, text)
	case "delta":
		frame(map[string]any{"type": "delta", "run": run, "text": text})
	case "raw":
		fmt.Println(strings.ReplaceAll(text, "RUN", run))
	case "tail":
		fmt.Print(strings.ReplaceAll(text, "RUN", run))
	case "recoverable":
		frame(map[string]any{"type": "error", "run": run, "code": "EIO", "message": text, "recoverable": true})
	case "call":
		tool, args, _ := strings.Cut(text, " ")
		frame(map[string]any{"type": "tool_call", "run": run, "id": "call-" + strconv.Itoa(step),
			"name": tool, "arguments": json.RawMessage(args)})
	case "flood":
		n, _ := strconv.Atoi(text)
		flood(n)
	case "line":
		n, _ := strconv.Atoi(text)
		os.Stdout.Write(append(bytes.Repeat([]byte("x"), n), '\n'))
	case "stderr":
		n, _ := strconv.Atoi(text)
		os.Stderr.Write(bytes.Repeat([]byte("e"), n))
	case "exit":
		n, _ := strconv.Atoi(text)
		os.Exit(n)
	case "env":
		say(run, strings.Join(os.Environ(), "\n"))
	case "envelope":
		say(run, string(body))
	case "observe":
		say(run, string(observation))
	case "control":
		say(run, control(strings.ReplaceAll(text, "RUN", run)+"\n"))
	case "sleep":
		if text == "deaf" {
			signal.Ignore(syscall.SIGTERM)
		} else {
			c := make(chan os.Signal, 1)
			signal.Notify(c, syscall.SIGTERM)
			frame(map[string]any{"type": "delta", "run": run, "text": "asleep"})
			<-c
			say(run, "too late")
			os.Exit(0)
		}
		frame(map[string]any{"type": "delta", "run": run, "text": "asleep"})
		time.Sleep(time.Hour)
	case "orphan":
		cmd := exec.Command("/bin/sh", "-c", "(setsid sh -c 'while :; do echo alive >> "+text+"; sleep 0.02; done' &) ; exit 0")
		cmd.Run()
	default:
		fmt.Fprintln(os.Stderr, "puppet: no verb", verb)
		os.Exit(64)
	}
}

// control asks the capability socket of the run.
func control(line string) string {
	c, err := net.Dial("unix", os.Getenv("CTX_CONTROL_SOCKET"))
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	io.WriteString(c, line) // it may have been turned away before
	reply, err := io.ReadAll(c)
	if err != nil && len(reply) == 0 {
		return err.Error()
	}
	return strings.TrimSuffix(string(reply), "\n")
}

func say(run, text string) {
	frame(map[string]any{"type": "message", "run": run, "role": "assistant",
		"content": []any{map[string]any{"type": "text", "text": text}}})
}

func frame(f map[string]any) {
	b, _ := json.Marshal(f)
	os.Stdout.Write(append(b, '\n'))
}

// flood writes about n bytes of deltas.
func flood(n int) {
	run := os.Getenv("CTX_RUN_ID")
	chunk := strings.Repeat("f", 8<<10)
	for ; n > 0; n -= len(chunk) {
		frame(map[string]any{"type": "delta", "run": run, "text": chunk[:min(n, len(chunk))]})
	}
}
