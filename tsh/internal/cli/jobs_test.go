package cli

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell/command"
	"cortexfs.org/tsh/internal/job"
	"golang.org/x/sys/unix"
)

func TestSignalOf(t *testing.T) {
	for word, want := range map[string]syscall.Signal{
		"": unix.SIGTERM, "9": unix.SIGKILL, "HUP": unix.SIGHUP, "SIGHUP": unix.SIGHUP, "usr1": unix.SIGUSR1, "sigstop": unix.SIGSTOP, "64": 64,
		"0": 0, "65": 0, "-9": 0, "SIG": 0, "NONE": 0, "SIGSIGHUP": 0,
	} {
		if got, err := signalOf(word); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %v %v", word, got, err)
		}
	}
}

func TestNameOf(t *testing.T) {
	for want, line := range map[string]command.Line{
		"say a":           {Words: []string{"say", "a"}},
		`say a\x1b[31m &`: {Words: []string{"say", "a\x1b[31m"}, Background: true},
		"say " + strings.Repeat("é", 28) + "…": {Words: []string{"say", strings.Repeat("é", 40)}},
	} {
		if got := nameOf(line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	term := &terminal{jobs: job.NewTable()}
	defer term.jobs.Close()
	for want, j := range map[string]job.Job{
		"[1]  running   x\n":             {State: job.Running},
		"[1]  stopped   x\n":             {State: job.Stopped, By: unix.SIGTSTP},
		"[1]  stopped, wants input  x\n": {State: job.Stopped, By: unix.SIGTTIN},
		"[1]  done      x\n":             {State: job.Ended},
		"[1]  exit 3    x\n":             {State: job.Ended, Code: 3},
		"[1]  killed by SIGSEGV  x\n":    {State: job.Ended, Code: 139, By: unix.SIGSEGV},
	} {
		j.N, j.Name = 1, "x"
		if got := term.describe(&j); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What stands before a word says what it can be.
func TestWords(t *testing.T) {
	root := tree(t)
	layout, err := paths.Find(conf(root).Paths)
	must(t, err)
	term := &terminal{shell: &shell{conf: conf(root), layout: layout}}
	for before, want := range map[string]string{
		"":             "tools fs.read files false",
		"  ":           "tools fs.read files false",
		"say x\n":      "tools fs.read files false",
		"help ":        "tools fs.read files false",
		"which ":       "fs.read files false",
		"which a b ":   "fs.read files false",
		"jobs ":        "files false",
		"fs.read ":     "files true",
		"fs.read a ":   "files true",
		"none -x ":     "files true",
		"jobs\nsay a ": "files true",
	} {
		words, files := term.words(before, "")
		got := ""
		for _, w := range []string{"tools", "fs.read"} {
			if slices.Contains(words, w) {
				got += w + " "
			}
		}
		if got += fmt.Sprint("files ", files); got != want {
			t.Errorf("%q: %s, want %s", before, got, want)
		}
	}
}
