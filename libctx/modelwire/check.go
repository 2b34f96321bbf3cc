package modelwire

import (
	"fmt"
	"slices"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/wire"
)

// Efforts are the words of the member effort and of the effort controls.
var Efforts = []string{"auto", "low", "medium", "high", "xhigh"}

func (*Detect) check() error { return nil }

func (p *Probe) check() error {
	if err := checkProvider(p.Provider); err != nil {
		return err
	}
	if p.Model == "" {
		return nil
	}
	if err := checkModel(p.Model); err != nil {
		return err
	}
	if ProviderOf(p.Model) != p.Provider {
		return errdefs.New(errdefs.Invalid, "member model: %s is not of provider %s", p.Model, p.Provider)
	}
	return nil
}

func (g *Generate) check() error {
	if g.Version != Version {
		return errdefs.New(errdefs.Invalid, "version %d is not %d", g.Version, Version)
	}
	if err := checkModel(g.Model); err != nil {
		return err
	}
	if err := checkMessages(g.Messages); err != nil {
		return err
	}
	if err := checkTools(g.Tools); err != nil {
		return err
	}
	switch {
	case g.ToolChoice != "" && g.ToolChoice != "auto" && g.ToolChoice != "none":
		return errdefs.New(errdefs.Invalid, "unknown tool_choice %.80q", g.ToolChoice)
	case g.Effort != "" && !slices.Contains(Efforts, g.Effort):
		return errdefs.New(errdefs.Invalid, "unknown effort %.80q", g.Effort)
	case g.MaxOutput < 0 || g.MaxOutput > libctx.MaxModelTokens:
		return errdefs.New(errdefs.Invalid, "max_output %d is out of range", g.MaxOutput)
	case len(g.Options) > libctx.MaxModelOptions:
		return errdefs.New(errdefs.Invalid, "%d options are more than %d", len(g.Options), libctx.MaxModelOptions)
	}
	for k, v := range g.Options {
		if k == "" || len(k) > libctx.MaxName || !plain(k) {
			return errdefs.New(errdefs.Invalid, "option %.80q: is not a name", k)
		}
		if len(v) > libctx.MaxModelOption || !plain(v) {
			return errdefs.New(errdefs.Invalid, "option %.80q: its value is too long or holds a control character", k)
		}
	}
	if len(g.CacheKey) > libctx.MaxModelOption || !plain(g.CacheKey) {
		return errdefs.New(errdefs.Invalid, "member cache_key is too long or holds a control character")
	}
	return nil
}

func plain(s string) bool {
	_, control := linefile.Control(s, "")
	return !control
}

func checkTools(tools []Tool) error {
	if len(tools) > libctx.MaxModelTools {
		return errdefs.New(errdefs.Invalid, "%d tools are more than %d", len(tools), libctx.MaxModelTools)
	}
	for i, t := range tools {
		switch {
		case t.Name == "":
			return missing("name")
		case i > 0 && tools[i-1].Name >= t.Name:
			return errdefs.New(errdefs.Invalid, "tool %s: tools are not sorted by name, each once", t.Name)
		case len(t.Description) > libctx.MaxModelDescription:
			return errdefs.New(errdefs.Invalid, "tool %s: its description is longer than %d bytes", t.Name, libctx.MaxModelDescription)
		case !isObject(t.Parameters):
			return errdefs.New(errdefs.Invalid, "tool %s: its parameters are not an object", t.Name)
		}
	}
	return nil
}

// checkMessages wants what every provider wants: a system message only at the
// beginning, and behind each assistant message the results of exactly its calls.
func checkMessages(list []Message) error {
	if len(list) == 0 || len(list) > libctx.MaxModelMessages {
		return errdefs.New(errdefs.Invalid, "%d messages are not 1 to %d", len(list), libctx.MaxModelMessages)
	}
	open := map[libctx.Call]bool{} // calls without a result
	for i := range list {
		m := &list[i]
		refuse := func(format string, args ...any) error {
			return errdefs.New(errdefs.Invalid, "message %d: %w", i+1, fmt.Errorf(format, args...))
		}
		if err := m.check(); err != nil {
			return refuse("%w", err)
		}
		if m.Role == "system" && i > 0 {
			return refuse("a system message is not the first")
		}
		if m.Role != "tool" && len(open) > 0 {
			return refuse("%d calls before it have no result", len(open))
		}
		for _, p := range m.Content {
			switch p.Type {
			case "tool_call":
				if open[p.Call] {
					return refuse("call %s is there twice", p.Call)
				}
				open[p.Call] = true
			case "tool_result":
				if !open[p.Call] {
					return refuse("the result of %s belongs to no call", p.Call)
				}
				delete(open, p.Call)
			}
		}
	}
	if len(open) > 0 {
		return errdefs.New(errdefs.Invalid, "%d calls at the end have no result", len(open))
	}
	return nil
}

// roles are the parts that the messages of a role may have.
var roles = map[string][]string{
	"system":    {"text"},
	"user":      {"text"},
	"assistant": {"text", "reasoning", "tool_call"},
	"tool":      {"tool_result"},
}

func (m *Message) check() error {
	parts, ok := roles[m.Role]
	if !ok {
		return errdefs.New(errdefs.Invalid, "unknown role %.80q", m.Role)
	}
	if m.Opaque != nil {
		if m.Role != "assistant" {
			return errdefs.New(errdefs.Invalid, "only an assistant has opaque data")
		}
		if err := m.Opaque.check(); err != nil {
			return err
		}
	}
	if len(m.Content) == 0 && m.Opaque == nil {
		return missing("content")
	}
	return checkParts(m.Content, parts)
}

func (o *Opaque) check() error {
	if err := checkProvider(o.Provider); err != nil {
		return err
	}
	if err := checkModel(o.Model); err != nil {
		return err
	}
	switch {
	case len(o.Data) == 0:
		return missing("data")
	case depth(o.Data) > libctx.MaxModelDepth:
		return errdefs.New(errdefs.Invalid, "member data is nested deeper than %d", libctx.MaxModelDepth)
	}
	return nil
}

func checkParts(list []wire.Part, allowed []string) error {
	for i := range list {
		p := &list[i]
		if !slices.Contains(allowed, p.Type) {
			return errdefs.New(errdefs.Invalid, "part %d: a part of type %.80q does not belong there", i+1, p.Type)
		}
		if err := checkPart(p); err != nil {
			return errdefs.New(errdefs.Invalid, "part %d: %w", i+1, err)
		}
	}
	return nil
}

func checkPart(p *wire.Part) error {
	call := p.Type == "tool_call"
	result := p.Type == "tool_result"
	switch {
	case !call && !result && p.Text == "":
		return missing("text")
	case (call || result) && p.Call == "":
		return missing("call")
	case call && p.Name == "" && p.Invalid == "":
		return missing("name")
	case call && !isObject(p.Arguments):
		return errdefs.New(errdefs.Invalid, "member arguments is not an object")
	case call && len(p.Arguments) > libctx.MaxModelArguments:
		return errdefs.New(errdefs.Invalid, "member arguments is longer than %d bytes", libctx.MaxModelArguments)
	case call && depth(p.Arguments) > libctx.MaxModelDepth:
		return errdefs.New(errdefs.Invalid, "member arguments is nested deeper than %d", libctx.MaxModelDepth)
	case result && p.Status != "ok" && p.Status != "error":
		return errdefs.New(errdefs.Invalid, "a result's status is ok or error")
	case call && p.Text != "", !call && (p.Arguments != nil || p.Invalid != ""), !result && p.Status != "",
		!call && !result && (p.Call != "" || p.Name != ""):
		return errdefs.New(errdefs.Invalid, "a %s has a member of another type", p.Type)
	case len(p.Invalid) > libctx.MaxInvalid:
		return errdefs.New(errdefs.Invalid, "member invalid is longer than %d bytes", libctx.MaxInvalid)
	}
	return nil
}

func (f *Start) check() error { return checkModel(f.Model) }

func (f *Lifecycle) check() error {
	return oneOf("state", f.State, "queued", "loading", "ready")
}

func (*Delta) check() error          { return nil }
func (*ReasoningDelta) check() error { return nil }
func (f *CallStart) check() error    { return checkIndex(f.Index) }
func (f *CallDelta) check() error    { return checkIndex(f.Index) }
func (f *CallEnd) check() error      { return checkIndex(f.Index) }

func checkIndex(i int) error {
	if i < 0 || i >= libctx.MaxModelParts {
		return errdefs.New(errdefs.Invalid, "index %d is not 0 to %d", i, libctx.MaxModelParts-1)
	}
	return nil
}

func (f *MessageFrame) check() error {
	if err := oneOf("stop", f.Stop, StopEnd, StopToolCalls, StopLength, StopRefusal, StopFiltered, StopOther); err != nil {
		return err
	}
	if len(f.Content) > libctx.MaxModelParts {
		return errdefs.New(errdefs.TooBig, "%d parts are more than %d", len(f.Content), libctx.MaxModelParts)
	}
	if err := checkParts(f.Content, roles["assistant"]); err != nil {
		return err
	}
	n := 0
	for _, p := range f.Content {
		if p.Type != "tool_call" {
			continue
		}
		if n++; p.Call != callID(n) {
			return errdefs.New(errdefs.Invalid, "call %d is named %s", n, p.Call)
		}
	}
	if f.Opaque != nil {
		return f.Opaque.check()
	}
	return nil
}

func (f *Usage) check() error {
	for _, n := range []*int64{f.Input, f.CacheRead, f.CacheWrite, f.Output, f.Reasoning} {
		if n != nil && (*n < 0 || *n > libctx.MaxModelTokens) {
			return errdefs.New(errdefs.Invalid, "%d tokens are out of range", *n)
		}
	}
	if f.Reasoning != nil && f.Output != nil && *f.Reasoning > *f.Output {
		return errdefs.New(errdefs.Invalid, "reasoning is more than output")
	}
	return nil
}

func (f *Error) check() error { return f.Failure.check() }

func (f *Found) check() error {
	if err := checkProvider(f.Name); err != nil {
		return err
	}
	switch {
	case f.Format == "":
		return missing("format")
	case f.BaseURL == "":
		return missing("base_url")
	case len(f.Models) > libctx.MaxProviderModels:
		return errdefs.New(errdefs.Invalid, "%d models are more than %d", len(f.Models), libctx.MaxProviderModels)
	}
	return nil
}

func (f *Verdict) check() error {
	if f.OK == (f.Failure != nil) {
		return errdefs.New(errdefs.Invalid, "a verdict is either ok or has a failure")
	}
	if f.Failure != nil {
		return f.Failure.check()
	}
	return nil
}

func (f *Done) check() error { return oneOf("status", f.Status, "ok", "error") }

func oneOf(name, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return errdefs.New(errdefs.Invalid, "member %s is none of %s", name, strings.Join(words, ", "))
}
