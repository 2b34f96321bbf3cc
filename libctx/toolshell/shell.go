package toolshell

import (
	"fmt"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/about"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/libctx/toolshell/settings"
	"cortexfs.org/libctx/wire"
)

// Store keeps the set of loaded tools of one session.
type Store interface {
	// Load is the set as it was last saved, empty if it was not.
	Load() (Set, error)
	Save(Set) error
}

// Memory is a Store that lives as long as the value. It may be used from any
// goroutine.
type Memory struct {
	mu  sync.Mutex
	set Set
}

// Load implements Store.
func (m *Memory) Load() (Set, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.set, nil
}

// Save implements Store.
func (m *Memory) Save(s Set) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set = s
	return nil
}

// Shell carries out builtins. It starts nothing, and the only thing it changes
// is the set of loaded tools; the caller sees to it that two builtins that
// change one set do not run at the same time.
type Shell struct {
	Catalog Catalog
	Store   Store
	// Config is the settings in force; it is asked only when they matter.
	Config func() (settings.Config, error)
	// Topics are explanations for help beside those of the builtins and tools.
	Topics map[string]string
	// Terminal: the builtins of command.Terminal count too. The caller carries them
	// out; here they are explained.
	Terminal bool
}

// Output is what a builtin came to. Lines of Text are data, with tabs between
// their fields; control characters in them are not taken out.
type Output struct {
	Text  string
	Errs  []error
	Exit  int  // the exit code: of the first error, or what exit was given
	Ended bool // the builtin was exit
}

// Content is text and errors as one text, the errors as a program would print
// them.
func (o Output) Content() string { return o.Text + Complaint(o.Errs) }

// Complaint is errors as the lines that a program prints, with at most one hint,
// that of the first error that has one.
func Complaint(errs []error) string {
	var b strings.Builder
	hint := ""
	for _, err := range errs {
		fmt.Fprintf(&b, "tsh: %s\n", err)
		if hint == "" {
			hint = errdefs.HintOf(err)
		}
	}
	if hint != "" {
		fmt.Fprintf(&b, "hint: %s\n", hint)
	}
	return b.String()
}

// Run carries out the builtin that words are, its name first. Of several
// operands those that can be served are, and each other adds an error. Wrong
// usage has exit code 2.
func (sh *Shell) Run(words []string) Output {
	c, err := command.Parse(words)
	if err != nil {
		return Output{Errs: []error{err}, Exit: errdefs.KindOf(err).Exit()}
	}
	r := &run{Shell: sh, Command: c}
	r.do()
	out := Output{Text: r.text.String(), Errs: r.errs, Exit: c.Code, Ended: c.Name == "exit"}
	if len(r.errs) > 0 {
		out.Exit = errdefs.KindOf(r.errs[0]).Exit()
	}
	return out
}

// run is one builtin at work.
type run struct {
	*Shell
	command.Command
	text strings.Builder
	errs []error
}

func (r *run) fail(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// line writes one line of fields.
func (r *run) line(fields ...string) {
	for i, f := range fields {
		if i > 0 {
			r.text.WriteByte('\t')
		}
		r.text.WriteString(oneLine(wire.Clean([]byte(f))))
	}
	r.text.WriteByte('\n')
}

// each calls do for every operand.
func (r *run) each(do func(word string) error) {
	for _, w := range r.Words {
		r.fail(do(w))
	}
}

// tool is each for operands that are tools to be found.
func (r *run) tool(do func(Item) error) {
	r.each(func(word string) error {
		item, err := r.find(word)
		if err != nil {
			return err
		}
		return do(item)
	})
}

func (r *run) find(word string) (Item, error) {
	name, err := libctx.ParseTool(word)
	if err != nil {
		return Item{}, err
	}
	return r.Catalog.Find(name)
}

func (r *run) do() {
	switch r.Name {
	case "tools":
		r.fail(r.tools())
	case "which":
		r.tool(func(i Item) error { r.line(i.Path); return nil })
	case "type":
		r.each(func(word string) error { return r.meaning(word, word+" is a tsh builtin", word+" is ") })
	case "command":
		r.each(func(word string) error { return r.meaning(word, word, "") })
	case "help":
		r.fail(r.help())
	case "loads":
		r.fail(r.loads(false))
	case "pins":
		r.fail(r.loads(true))
	case "load", "pin", "unload", "unpin":
		r.fail(r.change())
	}
}

// meaning says what a name is: a builtin, or a file behind a prefix.
func (r *run) meaning(word, builtin, prefix string) error {
	if _, ok := r.builtin(word); ok {
		r.line(builtin)
		return nil
	}
	item, err := r.find(word)
	if err == nil {
		r.line(prefix + item.Path)
	}
	return err
}

// builtin is the builtin of that name.
func (sh *Shell) builtin(name string) (command.Builtin, bool) {
	b, ok := command.Find(name)
	if !ok && sh.Terminal {
		b, ok = command.FindTerminal(name)
	}
	return b, ok
}

// listed is a line of tools --json.
type listed struct {
	Tool        string `json:"tool"`
	Path        string `json:"path"`
	Description string `json:"description"`
	Code        string `json:"code"`
}

func (r *run) tools() error {
	items, err := r.Catalog.List()
	if err != nil {
		return err
	}
	group := ""
	if len(r.Words) == 1 {
		group = strings.TrimSuffix(r.Words[0], ".") + "."
	}
	last := ""
	for _, i := range items {
		rest, in := strings.CutPrefix(string(i.Name), group)
		if !in {
			continue
		}
		head, _, inner := strings.Cut(rest, ".")
		switch {
		case r.JSON:
			line, err := wire.Marshal(listed{string(i.Name), wire.Clean([]byte(i.Path)), firstLine(i.Description), i.Refused})
			if err != nil {
				return err
			}
			r.text.Write(inert.JSON(line))
		case r.Long && i.Refused != "":
			r.line(string(i.Name), i.Path, brief(i.Description), i.Refused)
		case r.Long:
			r.line(string(i.Name), i.Path, brief(i.Description))
		case i.Refused != "":
		case !inner:
			r.line(string(i.Name))
		case head != last:
			last = head
			r.line(group + head + ".")
		}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(wire.Clean([]byte(s))), "\n")
	return oneLine(line)
}

// brief is the first sentence of a description, as listings show it.
func brief(s string) string {
	line := firstLine(s)
	if first, _, more := strings.Cut(line, ". "); more {
		return first + "."
	}
	return line
}

func (r *run) help() error {
	if len(r.Words) == 0 {
		r.text.WriteString(r.usage())
		return nil
	}
	word := r.Words[0]
	if b, ok := r.builtin(word); ok {
		r.line(b.Usage)
		r.line(b.About)
		return nil
	}
	item, err := r.find(word)
	if text, ok := r.Topics[word]; ok && err != nil {
		r.text.WriteString(text)
		return nil
	}
	if err != nil {
		return err
	}
	r.line(string(item.Name))
	r.line(item.Path)
	description := strings.TrimSpace(wire.Clean([]byte(item.Description)))
	for _, part := range []string{description, strings.TrimRight(Summary(item.Schema), "\n"), examples(item.Name, description)} {
		if part != "" {
			r.text.WriteString("\n" + part + "\n")
		}
	}
	return nil
}

// examples of a built-in tool are about the tool of that name only as long as
// its files describe it so.
func examples(name libctx.Tool, description string) string {
	lines := about.Examples(name)
	if lines == "" || description != about.Description(name) {
		return ""
	}
	return "examples\n  " + strings.ReplaceAll(lines, "\n", "\n  ")
}
