package sdk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/envelope"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
)

// Agent does one step. It returns what went wrong with the step as a whole: the
// run then fails. What a person should merely know goes to Recoverable.
type Agent func(*Step) error

// Main does one step of the process it is called in and returns its exit code:
// 0, or 1 after writing one line to standard error. Call it from main and exit
// with what it returns.
func Main(agent Agent) int {
	env := Launch{
		Run: os.Getenv("CTX_RUN_ID"), Step: os.Getenv("CTX_STEP"),
		Stdin: os.Stdin, Stdout: os.Stdout,
	}
	if err := env.Serve(agent); err != nil {
		fmt.Fprintf(os.Stderr, "agent: %v\n", err)
		return 1
	}
	return 0
}

// Launch is what the host gives a process besides its program. Main fills it
// from the process; a test fills it with what it likes.
type Launch struct {
	Run    string // CTX_RUN_ID
	Step   string // CTX_STEP, decimal
	Stdin  io.Reader
	Stdout io.Writer
}

// Serve reads the invocation, checks that it belongs to this launch and lets
// the agent do the step. A wrong invocation is errdefs.Invalid.
func (l Launch) Serve(agent Agent) error {
	body, err := io.ReadAll(io.LimitReader(l.Stdin, libctx.MaxEnvelope+1))
	if err != nil {
		return fmt.Errorf("read the invocation: %w", err)
	}
	inv, err := envelope.Decode(body)
	if err != nil {
		return err
	}
	if string(inv.Run) != l.Run {
		return errdefs.New(errdefs.Invalid, "the invocation is of run %q, CTX_RUN_ID says %q", inv.Run, l.Run)
	}
	if strconv.Itoa(inv.Step) != l.Step {
		return errdefs.New(errdefs.Invalid, "the invocation is of step %d, CTX_STEP says %q", inv.Step, l.Step)
	}
	return agent(&Step{
		Run: inv.Run, Number: inv.Step, Input: inv.Input,
		History: inv.HistoryMessages, ToolContext: inv.ToolContext, Observation: inv.Observation,
		out: l.Stdout, checked: *envelope.NewOutput(inv.Run),
	})
}

// Step is one start of the agent: what it was given, and the frames it writes.
// Not for concurrent use.
type Step struct {
	Run         libctx.Run
	Number      int    // 0 for the first step of the run
	Input       string // what the person wrote, the same in every step of the run
	History     string // JSON text of earlier messages, [{"role":…,"content":[…]},…]
	ToolContext string // text about loaded tools
	// Observation is the result of the call that the step before this one made;
	// nil in step 0, never nil later.
	Observation *envelope.Observation

	out     io.Writer
	checked envelope.Output // has seen every frame that was written
}

// ErrCalled is returned by everything that would write after Call.
var ErrCalled = errors.New("the step has ended with its tool call")

type frame struct {
	Type        string     `json:"type"`
	Run         libctx.Run `json:"run"`
	Text        *string    `json:"text,omitzero"`
	Role        string     `json:"role,omitzero"`
	Content     []part     `json:"content,omitzero"`
	Code        string     `json:"code,omitzero"`
	Message     string     `json:"message,omitzero"`
	Recoverable bool       `json:"recoverable,omitzero"`
	ID          string     `json:"id,omitzero"`
	Name        string     `json:"name,omitzero"`
	Arguments   any        `json:"arguments,omitzero"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Delta shows a piece of the answer while the agent still works. Deltas are
// never stored: say the whole answer with Message at the end.
func (s *Step) Delta(text string) error {
	text = wire.Clean([]byte(text))
	return s.write(frame{Type: "delta", Text: &text})
}

// Message says text to the person, and into the session.
func (s *Step) Message(text string) error {
	return s.write(frame{Type: "message", Role: "assistant", Content: []part{{"text", wire.Clean([]byte(text))}}})
}

// Recoverable reports a problem that does not end the run, under the errno name
// of its kind.
func (s *Step) Recoverable(err error) error {
	return s.write(frame{
		Type: "error", Code: string(errdefs.KindOf(err)), Message: wire.Clean([]byte(err.Error())), Recoverable: true,
	})
}

// Call ends the step with a tool call: the agent returns, and is started again
// with the result as its Observation. The id is the agent's own name for the
// call, never used twice in a run; arguments is anything that encodes to a JSON
// object, Words for a command line.
func (s *Step) Call(id, tool string, arguments any) error {
	return s.write(frame{Type: "tool_call", ID: id, Name: tool, Arguments: arguments})
}

// Words are the arguments of a call in command-line form.
func Words(words ...string) any {
	return map[string][]string{"args": words}
}

// write lets only those frames out that the host would accept; after a refused
// one the agent may go on with a better one.
func (s *Step) write(f frame) error {
	if s.checked.ToolCall() != nil {
		return ErrCalled
	}
	f.Run = s.Run
	line, err := json.Marshal(f, json.Deterministic(true))
	if err != nil {
		return errdefs.New(errdefs.Invalid, "frame %s: %w", f.Type, err)
	}
	after := s.checked
	if _, err := after.Line(line); err != nil {
		return err
	}
	if _, err := s.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	s.checked = after
	return nil
}
