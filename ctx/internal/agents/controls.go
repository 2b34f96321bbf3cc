package agents

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"cortexfs.org/ctx/internal/admin"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/tree"
	"golang.org/x/sys/unix"
)

// Get prints one control of an agent.
func Get(from *caller.Caller, a libctx.Agent, file string) error {
	text, err := tree.GetControl(from.Layout, a, file)
	if err != nil {
		return err
	}
	return from.Exact(string(text))
}

// Set replaces one control of an agent. The words of value are joined by one
// space; a single "-" reads standard input.
func Set(ctx context.Context, from *caller.Caller, a libctx.Agent, file string, value []string) error {
	text := strings.Join(value, " ")
	if len(value) == 1 && value[0] == "-" {
		var err error
		if text, err = from.ReadText(libctx.MaxControlFile); err != nil {
			return err
		}
	}
	if admin.Needed(from.Layout) {
		return ask(ctx, from, adminwire.Request{Op: adminwire.Set, Agent: a, Control: file, Content: &text}, nil)
	}
	return tree.SetControl(from.Layout, a, file, []byte(text))
}

// Show prints every control of an agent.
func Show(from *caller.Caller, a libctx.Agent) error {
	list, err := tree.Controls(from.Layout, a)
	if err != nil {
		return err
	}
	object := map[string]string{"agent": string(a)}
	var pairs []string
	for _, c := range list {
		text := strings.ToValidUTF8(string(c.Text), "\uFFFD")
		object[c.Name] = text
		// A control of several lines takes a line here for each of them.
		name := c.Name
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			pairs = append(pairs, name, strings.ReplaceAll(line, "\t", " "))
			if from.OutTTY {
				name = " "
			}
		}
	}
	return from.Record(object, pairs...)
}

// readFile reads a small text file that the caller named; "-" is standard
// input.
func readFile(from *caller.Caller, name string) ([]byte, error) {
	if name == "-" {
		text, err := from.ReadText(libctx.MaxControlFile)
		return []byte(text), err
	}
	b, err := readRegular(from.Abs(name), name)
	if err == nil && !utf8.Valid(b) {
		err = errdefs.New(errdefs.Invalid, "%s: is not UTF-8 text", name)
	}
	return b, err
}

// readRegular reads a regular file of at most the size of a control file. name
// is what messages call it.
func readRegular(path, name string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "%w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errdefs.New(errdefs.Invalid, "%s: is not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, libctx.MaxControlFile+1))
	switch {
	case err != nil:
		return nil, errdefs.New(errdefs.KindOf(err), "%w", err)
	case len(b) > libctx.MaxControlFile:
		return nil, errdefs.New(errdefs.TooBig, "%s: longer than %d bytes", name, libctx.MaxControlFile)
	}
	return b, nil
}

// CheckFile checks one control file, wherever it is; its place decides the
// grammar.
func CheckFile(from *caller.Caller, name string) error {
	path := from.Abs(name)
	text, err := readRegular(path, name)
	if err != nil {
		return err
	}
	grammar := filepath.Base(path)
	if dir := filepath.Base(filepath.Dir(path)); strings.HasSuffix(dir, ".d") {
		grammar = filepath.Base(filepath.Dir(filepath.Dir(path))) + " " + grammar
	}
	if err := control.CheckPath(path, text); err != nil {
		return errdefs.New(errdefs.Invalid, "%s: grammar %q: %w", name, grammar, err)
	}
	return from.Record(struct {
		Path    string `json:"path"`
		Grammar string `json:"grammar"`
		OK      bool   `json:"ok"`
	}{path, grammar, true}, "path", path, "grammar", grammar, "verdict", "ok")
}
