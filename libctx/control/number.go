package control

import (
	"strconv"
	"strings"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/linefile"
)

// number reads a decimal number without sign, spaces or leading zeros.
func number(s string, max uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err == nil && strconv.FormatUint(n, 10) == s && n <= max:
		return n, nil
	case strings.Trim(s, "0123456789") != "":
		return 0, linefile.Refuse(0, s, "is not a decimal number")
	case len(s) > 1 && s[0] == '0':
		return 0, linefile.Refuse(0, s, "has leading zeros")
	}
	return 0, linefile.Refuse(0, s, "is over %d", max)
}

// id reads a uid or gid. 2^32-1 is none: the kernel takes it for "no change".
func id(s string) (uint32, error) {
	n, err := number(s, 1<<32-2)
	return uint32(n), err
}

// ParseUint32 reads a file of one user or group id: owner, uid or gid.
func ParseUint32(file string, text []byte) (uint32, error) { return value(file, text, id) }

// ParseGroups reads the file groups, one gid a line; empty is no groups.
func ParseGroups(text []byte) ([]uint32, error) { return list("groups", text, id) }

// ParsePid reads the file pid; the empty file is 0, no process.
func ParsePid(text []byte) (int, error) {
	if len(text) == 0 {
		return 0, nil
	}
	return value("pid", text, func(s string) (int, error) {
		n, err := positive(s, 1<<31-1)
		return int(n), err
	})
}

func positive(s string, max uint64) (uint64, error) {
	n, err := number(s, max)
	if err == nil && n == 0 {
		err = linefile.Refuse(0, s, "is not above zero")
	}
	return n, err
}

// Window is the setting of the file window: a number of tokens, or 0 for auto,
// the limit the model says it has.
type Window uint32

// String is auto or the number.
func (w Window) String() string {
	if w == 0 {
		return "auto"
	}
	return strconv.FormatUint(uint64(w), 10)
}

// ParseWindow reads the file window: auto or a positive number of tokens.
func ParseWindow(text []byte) (Window, error) {
	return value("window", text, func(s string) (Window, error) {
		if s == "auto" {
			return 0, nil
		}
		if strings.Trim(s, "0123456789") != "" {
			return 0, linefile.Refuse(0, s, "is neither auto nor a decimal number of tokens")
		}
		n, err := positive(s, 1<<32-1)
		return Window(n), err
	})
}

// ParseResultBytes reads the file result_bytes: how many bytes of a tool's
// result a model sees, 1 to libctx.MaxToolResultHard. Without the file it is
// libctx.MaxToolResult.
func ParseResultBytes(text []byte) (int, error) {
	return value("result_bytes", text, func(s string) (int, error) {
		n, err := positive(s, libctx.MaxToolResultHard)
		return int(n), err
	})
}

// ParseTimeout reads the file timeout, how long one tool call may take: a Go
// duration above zero and up to libctx.MaxToolTimeout. Without the file it is
// libctx.ToolTimeout.
func ParseTimeout(text []byte) (time.Duration, error) { return value("timeout", text, timeout) }

func timeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, linefile.Refuse(0, s, "is not a duration such as 90s, 2m or 1h")
	case d <= 0:
		return 0, linefile.Refuse(0, s, "is not above zero")
	case d > libctx.MaxToolTimeout:
		return 0, linefile.Refuse(0, s, "is longer than %s", FormatTimeout(libctx.MaxToolTimeout))
	}
	return d, nil
}

// FormatTimeout is the canonical spelling of a duration: Go's, without the
// zeros at its end (2m, not 2m0s).
func FormatTimeout(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
