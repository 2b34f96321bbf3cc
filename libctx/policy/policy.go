// Package policy is policy v0: a list of things a subject may do, one a line,
//
//	allow SUBJECT CLASS:NAME PERMISSION
//
// and nothing else: what no line allows is denied. There are no comments, no
// patterns, no order and no way to deny. Parsing and deciding are pure.
package policy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// Rule is one line: the subject may do Permission to the object Class:Name.
type Rule struct {
	Subject                 libctx.Subject
	Class, Name, Permission string
}

// Policy is the rules of one file, in file order.
type Policy struct{ Rules []Rule }

// class is a kind of object: what may be done to it, and how it is named.
type class struct {
	permissions []string
	name        func(string) error
}

var classes = map[string]class{
	"tool":    {[]string{"execute"}, is(libctx.ParseTool)},
	"model":   {[]string{"use"}, is(libctx.ParseModel)},
	"shared":  {[]string{"read", "write"}, is(libctx.ParseSpace)},
	"session": {[]string{"read", "write", "resume"}, is(libctx.ParseSession)},
	"mount":   {[]string{"read", "write"}, is(libctx.ParseSpace)},
	"agent":   {[]string{"create", "start", "stop", "read", "write"}, is(libctx.ParseAgent)},
	"network": {[]string{"connect"}, func(s string) error {
		if s != "default" {
			return errors.New("is not a network: the only one is default")
		}
		return nil
	}},
}

func is[T any](parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		_, err := parse(s)
		return err
	}
}

// Parse reads a policy. Lines may be blank, and the four words may stand apart
// by any number of spaces and tabs; every line, the last one too, ends in LF.
// An empty text is the policy that allows nothing. Errors are errdefs.Invalid
// and name the line and the word (linefile.Error).
func Parse(text []byte) (Policy, error) {
	lines, err := linefile.Split(text)
	if err != nil {
		return Policy{}, err
	}
	var p Policy
	for i, line := range lines {
		if len(words(line)) == 0 {
			continue
		}
		r, err := parseRule(i+1, line)
		if err != nil {
			return Policy{}, err
		}
		p.Rules = append(p.Rules, r)
	}
	return p, nil
}

// ParseRule reads one line without its LF. Errors as Parse, line 1.
func ParseRule(line string) (Rule, error) { return parseRule(1, line) }

func parseRule(n int, line string) (Rule, error) {
	w := words(line)
	if len(w) == 0 {
		return Rule{}, linefile.Refuse(n, line, "is no rule: write allow SUBJECT CLASS:NAME PERMISSION")
	}
	if w[0] != "allow" {
		return Rule{}, linefile.Refuse(n, w[0], "is not allow, the only word a rule begins with")
	}
	if len(w) != 4 {
		return Rule{}, linefile.Refuse(n, line, "has %d words; a rule has four: allow SUBJECT CLASS:NAME PERMISSION", len(w))
	}
	subject, err := libctx.ParseSubject(w[1])
	if err != nil {
		return Rule{}, linefile.At(n, w[1], err)
	}
	object, permission := w[2], w[3]
	kind, name, ok := strings.Cut(object, ":")
	if !ok {
		return Rule{}, linefile.Refuse(n, object, "is not CLASS:NAME")
	}
	c, ok := classes[kind]
	if !ok {
		return Rule{}, linefile.Refuse(n, kind, "is not a class: agent, model, mount, network, session, shared or tool")
	}
	if err := c.name(name); err != nil {
		return Rule{}, linefile.At(n, cmp.Or(name, object), err)
	}
	if !slices.Contains(c.permissions, permission) {
		return Rule{}, linefile.Refuse(n, permission, "is not a permission of %s: %s", kind, strings.Join(c.permissions, ", "))
	}
	return Rule{subject, kind, name, permission}, nil
}

// words splits at spaces and tabs only: other white space of Unicode is part of
// a word, and so refused.
func words(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' })
}

// String is the rule as one line without LF.
func (r Rule) String() string {
	return "allow " + string(r.Subject) + " " + r.Class + ":" + r.Name + " " + r.Permission
}

// Text is the canonical text: one line a rule, single spaces, nothing else.
func (p Policy) Text() []byte {
	var b []byte
	for _, r := range p.Rules {
		b = append(append(b, r.String()...), '\n')
	}
	return b
}

// Allows reports whether a rule allows exactly this.
func (p Policy) Allows(s libctx.Subject, class, name, permission string) bool {
	return slices.Contains(p.Rules, Rule{s, class, name, permission})
}
