package control

import (
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// ParseModel reads an agent's file model: provider/model or an alias.
func ParseModel(text []byte) (libctx.Model, error) { return value("model", text, libctx.ParseModel) }

// ParseName reads a tool's file name.
func ParseName(text []byte) (libctx.Tool, error) { return value("name", text, libctx.ParseTool) }

// ParseTools reads an agent's file tools: the tools it may call directly
// besides tsh, which needs no line and may have none.
func ParseTools(text []byte) ([]libctx.Tool, error) {
	return list("tools", text, func(s string) (libctx.Tool, error) {
		if s == "tsh" {
			return "", linefile.Refuse(0, s, "is always there and is not listed")
		}
		return libctx.ParseTool(s)
	})
}

// ParseCap reads a tool's file cap: words that describe it, one a line. They
// grant nothing.
func ParseCap(text []byte) ([]string, error) {
	return list("cap", text, func(s string) (string, error) {
		_, err := libctx.ParseSubject(s)
		return s, err
	})
}

// Label is the security label of an agent: USER:ROLE:TYPE:LEVEL. Only the type,
// the subject of policies, has a meaning.
type Label struct {
	User, Role string
	Subject    libctx.Subject
	Level      string
}

// LabelOf is the label a new agent gets: user_u:agent_r:NAME_t:s0.
func LabelOf(a libctx.Agent) Label { return Label{"user_u", "agent_r", a.Subject(), "s0"} }

// String is the label as the file holds it.
func (l Label) String() string {
	return l.User + ":" + l.Role + ":" + string(l.Subject) + ":" + l.Level
}

// ParseLabel reads the file label.
func ParseLabel(text []byte) (Label, error) {
	return value("label", text, func(s string) (Label, error) {
		f := strings.Split(s, ":")
		if len(f) != 4 {
			return Label{}, linefile.Refuse(0, s, "is not USER:ROLE:TYPE:LEVEL")
		}
		for _, word := range f {
			if _, err := libctx.ParseSubject(word); err != nil {
				return Label{}, err
			}
		}
		return Label{f[0], f[1], libctx.Subject(f[2]), f[3]}, nil
	})
}

// Parent is the agent that made this one, and the session and run it did so in
// if they are known.
type Parent struct {
	Agent   libctx.Agent // "" for an agent that a person made
	Session libctx.Session
	Run     string // id of the run; its form is the maker's
}

// String is the parent as the file holds it, without LF; "" if there is none.
func (p Parent) String() string {
	switch {
	case p.Agent == "":
		return ""
	case p.Session == "":
		return "agent:" + string(p.Agent)
	}
	return "agent:" + string(p.Agent) + " session:" + string(p.Session) + " run:" + p.Run
}

// ParseParent reads the file parent: agent:NAME, or
// agent:NAME session:SESSION run:RUN; the empty file is no parent.
func ParseParent(text []byte) (Parent, error) {
	if len(text) == 0 {
		return Parent{}, nil
	}
	return value("parent", text, func(s string) (p Parent, err error) {
		f := strings.Split(s, " ")
		if len(f) != 1 && len(f) != 3 {
			return p, linefile.Refuse(0, s, "is not agent:NAME or agent:NAME session:SESSION run:RUN")
		}
		for i, key := range []string{"agent:", "session:", "run:"}[:len(f)] {
			name, ok := strings.CutPrefix(f[i], key)
			if !ok {
				return Parent{}, linefile.Refuse(0, f[i], "does not begin with %s", key)
			}
			switch i {
			case 0:
				p.Agent, err = libctx.ParseAgent(name)
			case 1:
				p.Session, err = libctx.ParseSession(name)
			case 2:
				_, err = libctx.ParseSubject(name)
				p.Run = name
			}
			if err != nil {
				return Parent{}, err
			}
		}
		return p, nil
	})
}
