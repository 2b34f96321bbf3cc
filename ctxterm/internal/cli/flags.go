package cli

import (
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// misused says what is wrong with the flags as every program of the suite does: in
// these words, and with the flag as it is written. Values are not repeated.
func misused(err error) error {
	text := err.Error()
	name := text[strings.LastIndex(text, " -")+1:]
	name, _, _ = strings.Cut(name, ":")
	name = "--" + strings.TrimLeft(name, "-")
	switch {
	case strings.HasPrefix(text, "flag provided but not defined: "):
		err = errdefs.New(errdefs.Invalid, "unknown flag %s", name)
	case strings.HasPrefix(text, "flag needs an argument: "):
		err = errdefs.New(errdefs.Invalid, "flag %s: needs a value", name)
	case strings.HasPrefix(text, "invalid boolean value "):
		err = errdefs.New(errdefs.Invalid, "flag %s: is on or off and takes no value", name)
	default:
		err = errdefs.New(errdefs.Invalid, "%w", err)
	}
	return errdefs.New(errdefs.Invalid, "%w", err).WithHint("ctxterm --help lists the flags; a PROGRAM with flags stands behind --")
}
