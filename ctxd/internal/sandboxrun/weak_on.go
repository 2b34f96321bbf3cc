//go:build faults

package sandboxrun

import (
	"os"
	"slices"
	"strings"

	"cortexfs.org/libctx/fault"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
)

// shown are the checks that a place inside is read-only.
var shown = map[string]func(inside string) bool{
	"sandbox:tree":    func(p string) bool { return p == paths.InRoot },
	"sandbox:session": func(p string) bool { return p == sandbox.InSession },
	"sandbox:protect": func(p string) bool { return p != paths.InWorkspace && paths.Below(p, paths.InWorkspace) },
}

// writable reports whether a place that is to be read-only is not.
func writable(inside string) bool {
	for check, is := range shown {
		if is(inside) && fault.Off(check) {
			return true
		}
	}
	return false
}

// weakRequest is the request without the comparisons that are switched off.
func weakRequest(r sandbox.Request) sandbox.Request {
	if fault.Off("sandbox:identity") {
		r.Expect = nil
	}
	for i := range r.Expect {
		r.Expect[i].ReadOnly = r.Expect[i].ReadOnly && !writable(r.Expect[i].Path)
	}
	return r
}

// words are options of bwrap, with the number of words behind them, that a check
// is made of.
var words = map[string]struct {
	option string
	more   int
}{
	"sandbox:namespaces": {"--disable-userns", 0},
	"sandbox:network":    {"--unshare-net", 0},
	"sandbox:filter":     {"--seccomp", 1},
	"sandbox:sizes":      {"--size", 1},
}

// weakOptions is the command line without what is switched off.
func weakOptions(options []string) []string {
	for i, o := range options {
		if o == "--ro-bind" && writable(options[i+2]) {
			options[i] = "--bind"
		}
	}
	for check, w := range words {
		if !fault.Off(check) {
			continue
		}
		for at := slices.Index(options, w.option); at >= 0; at = slices.Index(options, w.option) {
			options = slices.Delete(options, at, at+1+w.more)
		}
	}
	return options
}

// weakCommand is the entry step's command line without its limits, if those are
// switched off.
func weakCommand(command []string) []string {
	for i, word := range command {
		if strings.HasPrefix(word, "--processes=") && fault.Off("sandbox:limits") {
			command[i] = "--processes=1000000"
		}
	}
	return command
}

// weakEnviron is the environment of bwrap, which is this process's own if it is
// not kept from it.
func weakEnviron() []string {
	if fault.Off("sandbox:environment") {
		text, _ := os.ReadFile("/proc/self/environ")
		return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
	return []string{}
}
