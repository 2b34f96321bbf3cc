package sandbox

import (
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// What an entry step answers at its channel, in this order; in place of either
// it may answer a Refusal, and its end without one is a failed launch.
const (
	Ready    = "ready\n" // it waits for its request
	Handover = "go\n"    // it executes the payload in this moment
)

// Entry is how the entry step, the first program in every sandbox, is started:
// it sets limits, closes what is open, and waits at its channel for one Request.
type Entry struct {
	Channel int // descriptor of a stream socket; all others from 3 up are closed
	Limits  Limits
}

// Args are the words behind "ctxtool entry".
func (e Entry) Args() []string {
	return []string{
		"--channel=" + strconv.Itoa(e.Channel),
		"--processes=" + strconv.FormatUint(e.Limits.Processes, 10),
		"--open-files=" + strconv.FormatUint(e.Limits.OpenFiles, 10),
		"--file-bytes=" + strconv.FormatUint(e.Limits.FileBytes, 10),
	}
}

// ParseEntry reads what Args wrote. Everything else is errdefs.Invalid.
func ParseEntry(words []string) (Entry, error) {
	var e Entry
	options := []struct {
		name string
		set  func(string) bool
	}{
		{"--channel=", descriptor(&e.Channel)},
		{"--processes=", number(&e.Limits.Processes)},
		{"--open-files=", number(&e.Limits.OpenFiles)},
		{"--file-bytes=", number(&e.Limits.FileBytes)},
	}
	if len(words) != len(options) {
		return Entry{}, errdefs.New(errdefs.Invalid, "entry step: %d words instead of %d", len(words), len(options))
	}
	for at, o := range options {
		value, ok := strings.CutPrefix(words[at], o.name)
		if !ok || !o.set(value) {
			return Entry{}, errdefs.New(errdefs.Invalid, "entry step: word %d is not %sVALUE", at+1, o.name)
		}
	}
	return e, nil
}

func number(to *uint64) func(string) bool {
	return func(s string) bool {
		v, err := strconv.ParseUint(s, 10, 64)
		*to = v
		return err == nil && strconv.FormatUint(v, 10) == s
	}
}

func descriptor(to *int) func(string) bool {
	return func(s string) bool {
		v, err := strconv.Atoi(s)
		*to = v
		return err == nil && v >= 3 && v < 1<<20 && strconv.Itoa(v) == s
	}
}

// Refusal is the line by which the entry step answers why there is no payload.
func Refusal(err error) string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, err.Error())
	return string(errdefs.KindOf(err)) + " " + text + "\n"
}

// ParseReport reads all that an entry step answered, with or without its Ready:
// nil after a handover, the refusal, or errdefs.Unavailable if it never came to
// either.
func ParseReport(report string) error {
	rest, handed := strings.CutPrefix(strings.TrimPrefix(report, Ready), Handover)
	if rest == "" {
		if handed {
			return nil
		}
		return errdefs.New(errdefs.Unavailable, "the entry step did not run")
	}
	kind, text, ok := strings.Cut(strings.TrimSuffix(rest, "\n"), " ")
	if !ok || !strings.HasPrefix(kind, "E") {
		return errdefs.New(errdefs.Internal, "the entry step reported %.200q", report)
	}
	return errdefs.New(errdefs.Kind(kind), "%s", text)
}
