package libctx

import (
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx/fault"
	"github.com/oklog/ulid/v2"
)

// NameError says why a string is not a name of some kind. The rejected text is
// kept quoted and clipped, so that it can be shown to a person as it is.
type NameError struct {
	Kind  string // "agent name", "session name", …
	Value string // the rejected text
	Why   string
}

func (e *NameError) Error() string {
	v := e.Value
	if len(v) > 80 {
		v = v[:80] + "…"
	}
	return fmt.Sprintf("%s %q: %s", e.Kind, v, e.Why)
}

// checkName is the object name grammar (docs/reference/tree.md):
// [A-Za-z0-9][A-Za-z0-9._+-]{0,63}, not ending in .sock or .d.
func checkName(kind, s string, max int) error {
	bad := func(why string) error { return &NameError{kind, s, why} }
	switch {
	case s == "":
		return bad("is empty")
	case len(s) > max:
		return bad(fmt.Sprintf("is longer than %d bytes", max))
	case strings.HasSuffix(s, ".sock"), strings.HasSuffix(s, ".d"):
		return bad("ends in .sock or .d")
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if alnum || i > 0 && strings.IndexByte("._+-", c) >= 0 {
			continue
		}
		if i == 0 {
			return bad("does not begin with a letter or digit")
		}
		return bad("holds a character other than letters, digits and . _ + -")
	}
	return nil
}

func parse[T ~string](kind, s string, max int) (T, error) {
	if err := checkName(kind, s, max); err != nil {
		return "", err
	}
	return T(s), nil
}

func unmarshal[T ~string](to *T, text []byte, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err == nil {
		*to = v
	}
	return err
}

// Agent names an agent: an entry of <root>/agent.
type Agent string

// ParseAgent checks an agent name: the object grammar, at most 62 bytes.
func ParseAgent(s string) (Agent, error) { return parse[Agent]("agent name", s, MaxAgentName) }

// Subject is the policy subject of the agent: its name and "_t".
func (a Agent) Subject() Subject { return Subject(a) + "_t" }

// UnmarshalText is ParseAgent for decoders.
func (a *Agent) UnmarshalText(t []byte) error { return unmarshal(a, t, ParseAgent) }

// Subject is the type field of an agent's label, the first word of policy rules.
type Subject string

// ParseSubject checks a subject: the object grammar.
func ParseSubject(s string) (Subject, error) { return parse[Subject]("subject", s, MaxName) }

// Tool names a tool: an entry of a directory on CTX_PATH.
type Tool string

// ParseTool checks a tool name: the object grammar.
func ParseTool(s string) (Tool, error) { return parse[Tool]("tool name", s, MaxName) }

// UnmarshalText is ParseTool for decoders.
func (t *Tool) UnmarshalText(b []byte) error { return unmarshal(t, b, ParseTool) }

// Session names a session of one agent and scope.
type Session string

// DefaultSession is used where a request names none.
const DefaultSession Session = "default"

// ParseSession checks a session name: the object grammar, and not "index",
// which is the directory beside the sessions that lists them.
func ParseSession(s string) (Session, error) {
	if s == "index" {
		return "", &NameError{"session name", s, "is reserved"}
	}
	return parse[Session]("session name", s, MaxName)
}

// UnmarshalText is ParseSession for decoders.
func (s *Session) UnmarshalText(b []byte) error { return unmarshal(s, b, ParseSession) }

// Space names a shared space.
type Space string

// ParseSpace checks the name of a shared space: the object grammar.
func ParseSpace(s string) (Space, error) { return parse[Space]("space name", s, MaxName) }

// ClientID is the id a client gives its request; unique within a session.
type ClientID string

// ParseClientID checks a client id: the object grammar.
func ParseClientID(s string) (ClientID, error) { return parse[ClientID]("id", s, MaxName) }

// UnmarshalText is ParseClientID for decoders.
func (c *ClientID) UnmarshalText(b []byte) error { return unmarshal(c, b, ParseClientID) }

// Call is the id of one tool call within its run.
type Call string

// ParseCall checks a call id: the object grammar.
func ParseCall(s string) (Call, error) { return parse[Call]("call id", s, MaxName) }

// UnmarshalText is ParseCall for decoders.
func (c *Call) UnmarshalText(b []byte) error { return unmarshal(c, b, ParseCall) }

// Model names a model: "provider/model", or an alias, which is one object name.
type Model string

// ParseModel checks a model name: two object names around one slash, or one
// object name (an alias).
func ParseModel(s string) (Model, error) {
	provider, model, two := strings.Cut(s, "/")
	if err := checkName("model name", provider, MaxName); err != nil {
		return "", err
	}
	if two {
		if err := checkName("model name", model, MaxName); err != nil {
			return "", err
		}
	}
	return Model(s), nil
}

// Run is the id of one run, made by the host: a ULID, so that ids of one host
// sort by time. Nothing may depend on that order; the ledger's is the order.
type Run string

// NewRun makes a fresh run id.
func NewRun() Run { return Run(ulid.MustNewDefault(fault.Now()).String()) }

// ParseRun checks the form of a run id.
func ParseRun(s string) (Run, error) {
	if _, err := ulid.ParseStrict(s); err != nil {
		return "", &NameError{"run id", s, "is not a run id"}
	}
	return Run(s), nil
}

// UnmarshalText is ParseRun for decoders.
func (r *Run) UnmarshalText(b []byte) error { return unmarshal(r, b, ParseRun) }

// Event is the id of one durable frame: RUN "." N, N counting the durable
// frames of that run from 1.
type Event string

// MakeEvent is the id of the n-th durable frame of a run, n from 1.
func MakeEvent(r Run, n int) Event { return Event(string(r) + "." + strconv.Itoa(n)) }

// ParseEvent checks the form of an event id.
func ParseEvent(s string) (Event, error) {
	run, n, ok := strings.Cut(s, ".")
	if ok {
		if _, err := ParseRun(run); err == nil {
			if i, err := strconv.Atoi(n); err == nil && i > 0 && strconv.Itoa(i) == n {
				return Event(s), nil
			}
		}
	}
	return "", &NameError{"event id", s, "is not an event id"}
}

// Run is the run the event belongs to.
func (e Event) Run() Run {
	run, _, _ := strings.Cut(string(e), ".")
	return Run(run)
}

// UnmarshalText is ParseEvent for decoders.
func (e *Event) UnmarshalText(b []byte) error { return unmarshal(e, b, ParseEvent) }
