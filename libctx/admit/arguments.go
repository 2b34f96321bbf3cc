package admit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Route finds what a call would run. A call of tsh with {"args":[NAME, WORDS…]}
// is the call of the tool NAME with {"args":[WORDS…]}, no longer direct, and
// via is "tsh". Every other call comes back as it is; so does a call of tsh
// whose first word is a builtin (Builtin tells), which runs no tool. Errors are
// errdefs.Invalid: the words are no such list, or name no tool; the call comes
// back unchanged then.
func Route(c Call) (inner Call, via libctx.Tool, err error) {
	if c.Name != Shell {
		return c, "", nil
	}
	words, isArgs, err := commandLine(c.Arguments)
	switch {
	case err != nil:
		return c, "", errdefs.New(errdefs.Invalid, "%w", err)
	case !isArgs:
		return c, "", errdefs.New(errdefs.Invalid, `tsh takes {"args":[…]} alone`)
	case len(words) == 0:
		return c, "", errdefs.New(errdefs.Invalid, "tsh was given no tool")
	}
	if command.Is(words[0]) {
		return c, "", nil
	}
	name, err := libctx.ParseTool(words[0])
	if err != nil {
		return c, "", errdefs.New(errdefs.Invalid, "%w", err)
	}
	if name == Shell {
		return c, "", errdefs.New(errdefs.Invalid, "tsh does not run itself")
	}
	line, err := wire.Marshal(struct {
		Args []string `json:"args"`
	}{append([]string{}, words[1:]...)})
	if err != nil {
		return c, "", errdefs.New(errdefs.Invalid, "%w", err)
	}
	return Call{Name: name, Arguments: bytes.TrimSuffix(line, []byte("\n")), Session: c.Session, Cwd: c.Cwd}, Shell, nil
}

// Builtin is the words of a call that is a builtin of the shell, nil for every
// other call.
func Builtin(c Call) []string {
	if c.Name != Shell {
		return nil
	}
	words, isArgs, err := commandLine(c.Arguments)
	if err != nil || !isArgs || len(words) == 0 || !command.Is(words[0]) {
		return nil
	}
	return words
}

// commandLine reads the command-line form, an object with the one member args,
// a list of strings. isArgs is false for every other object; an error means the
// form is meant but broken: over MaxArgs words, a word over MaxArg bytes or
// with NUL, or no strict JSON object at all.
func commandLine(args jsontext.Value) (words []string, isArgs bool, err error) {
	var members map[string]jsontext.Value
	if err := wire.Object(args, &members); err != nil {
		return nil, false, err
	}
	raw, ok := members["args"]
	if !ok || len(members) != 1 || raw.Kind() != '[' {
		return nil, false, nil
	}
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, false, err
	}
	if len(list) > libctx.MaxArgs {
		return nil, false, fmt.Errorf("args holds %d words, the limit is %d", len(list), libctx.MaxArgs)
	}
	words = make([]string, len(list))
	for i, v := range list {
		w, ok := v.(string)
		switch {
		case !ok:
			return nil, false, errors.New("args holds something other than strings")
		case len(w) > libctx.MaxArg:
			return nil, false, fmt.Errorf("a word of args has %d bytes, the limit is %d", len(w), libctx.MaxArg)
		case strings.ContainsRune(w, 0):
			return nil, false, errors.New("a word of args holds a NUL character")
		}
		words[i] = w
	}
	return words, true, nil
}
