package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx/errdefs"
)

// Token is the byte the entry step must read before it executes anything. The
// end of the pipe in its place means that nobody wants the payload any more.
const Token = 'T'

// Handover is what the entry step reports in the moment before it executes the
// payload.
const Handover = "go\n"

// Entry is the task of the entry step, the first program in every sandbox: wait
// for the token, set limits, make sure that nothing was exchanged, and become
// the payload.
type Entry struct {
	Token, Report int // descriptors; all others from 3 up are closed
	Limits        Limits
	Expect        []Expect
	Cwd           string // inside path
	Argv          []string
}

// Args are the words behind "ctxtool entry".
func (e Entry) Args() []string {
	words := []string{
		"--token=" + strconv.Itoa(e.Token),
		"--report=" + strconv.Itoa(e.Report),
		"--processes=" + strconv.FormatUint(e.Limits.Processes, 10),
		"--open-files=" + strconv.FormatUint(e.Limits.OpenFiles, 10),
		"--file-bytes=" + strconv.FormatUint(e.Limits.FileBytes, 10),
		"--cwd=" + e.Cwd,
	}
	for _, x := range e.Expect {
		words = append(words, fmt.Sprintf("--expect=%d:%d:%s", x.Dev, x.Ino, x.Path))
	}
	return append(append(words, "--"), e.Argv...)
}

// ParseEntry reads what Args wrote. Everything else is errdefs.Invalid.
func ParseEntry(words []string) (Entry, error) {
	var e Entry
	at := 0
	bad := func(why string) (Entry, error) {
		return Entry{}, errdefs.New(errdefs.Invalid, "entry step: word %d: %s", at+1, why)
	}
	// Every option but the last kind stands at its place.
	options := []struct {
		name string
		set  func(string) bool
	}{
		{"--token=", descriptor(&e.Token)},
		{"--report=", descriptor(&e.Report)},
		{"--processes=", number(&e.Limits.Processes)},
		{"--open-files=", number(&e.Limits.OpenFiles)},
		{"--file-bytes=", number(&e.Limits.FileBytes)},
		{"--cwd=", func(v string) bool { e.Cwd = v; return strings.HasPrefix(v, "/") }},
	}
	for ; at < len(options); at++ {
		if at >= len(words) {
			return bad("is missing")
		}
		value, ok := strings.CutPrefix(words[at], options[at].name)
		if !ok || !options[at].set(value) {
			return bad("is not " + options[at].name + "VALUE")
		}
	}
	for ; at < len(words) && words[at] != "--"; at++ {
		x, ok := parseExpect(words[at])
		if !ok {
			return bad("is not --expect=DEV:INO:PATH")
		}
		e.Expect = append(e.Expect, x)
	}
	if at+1 >= len(words) || !strings.HasPrefix(words[at+1], "/") {
		return bad("no payload with an absolute path follows")
	}
	if e.Token == e.Report {
		return bad("token and report are one descriptor")
	}
	e.Argv = words[at+1:]
	return e, nil
}

func parseExpect(word string) (x Expect, ok bool) {
	value, ok := strings.CutPrefix(word, "--expect=")
	if !ok {
		return x, false
	}
	f := strings.SplitN(value, ":", 3)
	if len(f) != 3 {
		return x, false
	}
	x.Path = f[2]
	return x, number(&x.Dev)(f[0]) && number(&x.Ino)(f[1]) && strings.HasPrefix(x.Path, "/")
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

// Refusal is the line by which the entry step reports why there is no payload.
func Refusal(err error) string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, err.Error())
	return string(errdefs.KindOf(err)) + " " + text + "\n"
}

// ParseReport reads all that an entry step reported: nil after a handover, the
// refusal, or errdefs.Unavailable if it never came to either.
func ParseReport(report string) error {
	rest, handed := strings.CutPrefix(report, Handover)
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
