package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cortexfs.org/tests/internal/checker"
	"cortexfs.org/tests/internal/scripted"
	"cortexfs.org/tests/internal/world"
)

// lab is a provider of models that fails every now and then. What its model
// answers stands in the user's message: a line "job ID", then turns, with "--"
// between them, of lines
//
//	call WORDS   a call of tsh with these words, a JSON array
//	raw TEXT     a call of tsh with these arguments, right or wrong
//	say TEXT     some text
//	length       the answer reaches its limit here
//	hang         nothing more, until somebody gives up
//
// After the last turn, and where it has no tools, it says that it is done.
type lab struct {
	*scripted.Server
	tally  *tally
	kind   atomic.Bool // it fails no more
	mu     sync.Mutex
	random *rand.Rand
}

// newLab makes a world of model agents.
func newLab(t testing.TB, tl *tally, agents, sessions int, seed uint64) *arena {
	t.Helper()
	a := furnished(t, breakable(t, world.NewUser(t)), tl, sessions)
	l := &lab{tally: tl, random: rand.New(rand.NewPCG(seed, 77))}
	l.Server = scripted.New(t, l.reply)
	l.Forget()
	a.lab = l
	// A small window: history leaves the prompt all the time.
	a.w.MustCtx("provider", "add", "lab", "--base-url", l.URL, "--model", "m", "--limit", "40000", "--no-key")
	for i := range agents {
		name := fmt.Sprintf("m%d", i)
		a.w.MustCtx("agent", "new", name, "--model", "lab/m", "--tool", "mark", "--tool", "fs.read")
		a.agents = append(a.agents, name)
	}
	return a
}

// reply answers a request, or fails to.
func (l *lab) reply(r *scripted.Request) scripted.Answer {
	var c scripted.Chat
	if err := json.Unmarshal(r.Body, &c); err != nil {
		l.tally.wrong("a request is %.300q: %v", r.Body, err)
		return scripted.Close
	}
	if err := c.Paired(); err != nil {
		l.tally.wrong("a request is not well formed: %v: %.2000q", err, r.Body)
	}
	l.tally.count("requests")
	answer := l.answer(c)
	if l.kind.Load() {
		return answer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	dice := l.random.IntN(100)
	if dice < 12 {
		l.tally.count("failing answers")
	}
	half := scripted.Seq(scripted.Head(), scripted.Events(scripted.Content("Half an")),
		scripted.Events(scripted.Tool(0, "same", "tsh", `{"args":["mark","never`)))
	switch {
	case dice < 2:
		return scripted.Status(503, "application/json", `{"error":{"message":"busy"}}`)
	case dice < 4:
		return scripted.Status(429, "text/plain", "slowly", "Retry-After: 1")
	case dice < 6:
		return scripted.Reset
	case dice < 8:
		return scripted.Seq(half, scripted.Reset)
	case dice < 10:
		return scripted.Seq(half, scripted.Close)
	case dice < 12:
		return scripted.Seq(half, scripted.Events(`{"error":{"message":"broken"}}`), scripted.End())
	}
	return answer
}

// answer is what the newest job wants.
func (l *lab) answer(c scripted.Chat) scripted.Answer {
	var turns []string
	turn := 0
	for _, m := range c.Messages {
		switch m.Role {
		case "user":
			// Messages that nobody answered stand in one, in their order.
			if at := strings.LastIndex("\n"+m.Content, "\njob "); at >= 0 {
				turns, turn = strings.Split(m.Content[at:], "\n--\n"), 0
			}
		case "assistant":
			turn++
		}
	}
	if turn >= len(turns) || len(c.Tools) == 0 {
		return scripted.Text("It is ", "done.")
	}
	stop := "stop"
	var events []string
	calls := 0
	for line := range strings.Lines(turns[turn]) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "call":
			rest = `{"args":` + rest + `}`
			fallthrough
		case "raw":
			id := "same"
			if calls%2 == 1 {
				id = fmt.Sprintf("call_%d", calls)
			}
			stop = "tool_calls"
			events = append(events, scripted.Tool(calls, id, "tsh", rest))
			calls++
		case "say":
			events = append(events, scripted.Content(rest))
		case "length":
			stop = "length"
		case "hang":
			return scripted.Seq(scripted.Head(), scripted.Events(events...), scripted.Hang)
		}
	}
	return scripted.Stream(append(events, scripted.Finish(stop), scripted.Usage(100, 10), scripted.Done)...)
}

// job makes a message for a model.
func (a *arena) job(c *client, m *message) {
	mark := func(step int, words ...string) string {
		return "call " + world.JSON(append([]string{"mark", fmt.Sprintf("%s.%d", m.id, step)}, words...))
	}
	const read = `call ["fs.read","README.md"]`
	var turns []string
	switch dice := c.random.IntN(100); {
	case dice < 10:
		m.op, m.args = "tsh", []string{"mark", m.id + ".0"}
		return
	case dice < 20:
		turns = []string{"say Hello."}
	case dice < 45:
		turns = []string{"say Well.\n" + mark(0), mark(1) + "\n" + mark(2)}
	case dice < 60:
		turns = []string{read + "\n" + read + "\n" + mark(0) + "\n" + read, mark(1, "slow"), mark(2, "bad")}
	case dice < 68:
		turns = []string{mark(0, "brood"), mark(1, "big"), read}
	case dice < 74:
		turns = []string{`raw {"args":` + "\n" + `call ["nosuch"]` + "\n" + mark(0)}
	case dice < 80:
		turns = []string{mark(0), "length\nsay Too\n" + mark(1)}
	case dice < 84:
		turns = []string{mark(0), "say  "}
	case dice < 88:
		turns = []string{strings.Repeat(`call ["help"]`+"\n", 34) + mark(0)}
	case dice < 92:
		turns = []string{mark(0) + "\nsay " + strings.Repeat("é long ", 3000)}
	default:
		m.cancels = true
		turns = []string{mark(0), "say Hm.\nhang"}
	}
	m.input = "job " + m.id + "\n" + strings.Join(turns, "\n--\n")
}

// marking is a message that leaves one mark and is answered.
func (a *arena) marking(id string) string {
	if a.lab != nil {
		return "job " + id + "\ncall " + world.JSON([]string{"mark", id + ".0"})
	}
	return "call mark " + world.JSON(map[string]any{"args": []string{id + ".0"}}) + "\n--\nsay " + id
}

// sayings are the operations that say something into a run.
var sayings = []string{"steer", "steer", "steer", "follow_up", "follow_up", "finish"}

// tell says something into whatever run a session has, again and again until it
// is told what became of that, or until is over.
func (c *client) tell(agent, session, op, id string, until <-chan struct{}) {
	input := op + " " + id
	line := world.JSON(map[string]any{"op": op, "id": id, "session": session, "input": input})
	c.notes.add(checker.Note{Agent: agent, Session: session, Client: id, Input: input})
	for {
		if answer, f, err := c.once(agent, line); err == nil {
			code := f.Str("code")
			c.tally.count(op + " " + f.Type() + code)
			switch {
			case f.Type() == "accepted":
				c.notes.add(checker.Note{Agent: agent, Session: session, Frame: answer})
				return
			case code == "ENOENT", code == "EALREADY":
				return
			case !excused(f):
				c.tally.wrong("%s: %s: %s", c.name, op, answer)
				return
			}
		}
		select {
		case <-until:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// once asks something that has one frame as its answer.
func (c *client) once(agent, line string) (string, world.Frame, error) {
	k, err := c.dial(agent)
	if err != nil {
		return "", nil, err
	}
	defer k.Close()
	if _, err := io.WriteString(k, line+"\n"); err != nil {
		return "", nil, err
	}
	text, f, err := k.read()
	if err != nil {
		c.judge(line, err)
	}
	return text, f, err
}
