package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"cortexfs.org/libctx"
)

// The tests run this test binary as ctxterm.
func TestMain(m *testing.M) {
	if path := os.Getenv("RUN_CLIENT"); path != "" {
		connect(path)
		os.Exit(0)
	}
	if os.Getenv("RUN_CTXTERM") != "" {
		os.Unsetenv("RUN_CTXTERM")
		main()
	}
	os.Exit(m.Run())
}

// ctxterm runs it and returns standard output, standard error and the status.
func ctxterm(t *testing.T, stdin string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return outcome(t, strings.NewReader(stdin), args...)
}

func outcome(t *testing.T, stdin io.Reader, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = []string{"RUN_CTXTERM=1", "PATH=/usr/bin:/bin"}
	cmd.Stdin = stdin
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	cmd.Run()
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), problem.String(), cmd.ProcessState.ExitCode()
}

func TestCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		args           []string
		stdout, stderr string
		status         int
	}{
		"a size":              {[]string{"--size", "100x30", "--", "stty", "size"}, "30 100\n", "", 0},
		"the default size":    {[]string{"--", "stty", "size"}, "24 80\n", "", 0},
		"a TERM":              {[]string{"--", "sh", "-c", "echo $TERM"}, "xterm-256color\n", "", 0},
		"without dashes":      {[]string{"echo", "-n", "--size", "a b"}, "--size a b", "", 0},
		"a status":            {[]string{"--", "sh", "-c", "exit 42"}, "", "", 42},
		"a signal":            {[]string{"--", "sh", "-c", "kill -KILL $$"}, "", "", 137},
		"its stderr is shown": {[]string{"--", "sh", "-c", "echo oops >&2"}, "oops\n", "", 0},
		"no such program":     {[]string{"--", "no-such-program"}, "", "ctxterm: no-such-program: not found\n", 127},
		"not executable":      {[]string{"--", "/etc/passwd"}, "", "ctxterm: /etc/passwd: permission denied\n", 126},
		"no program":          {nil, "", "ctxterm: no PROGRAM\nhint: ctxterm -- PROGRAM ARGS…\n", 2},
		"a bad size":          {[]string{"--size", "80", "--", "true"}, "", "ctxterm: size \"80\" is not COLSxROWS, each 1 to 1000\n", 2},
		"an unknown flag":     {[]string{"--tall", "--", "true"}, "", "ctxterm: unknown flag --tall\nhint: ctxterm --help lists the flags; a PROGRAM with flags stands behind --\n", 2},
		"its version":         {[]string{"--version"}, "ctxterm version " + libctx.Build() + "\n", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, status := ctxterm(t, "", c.args...)
			// Without echo off, the end of the empty input shows as ^D on some programs.
			stdout = strings.ReplaceAll(stdout, "^D\b\b", "")
			if stdout != c.stdout || stderr != c.stderr || status != c.status {
				t.Errorf("%q, %q, %d", stdout, stderr, status)
			}
		})
	}
}

func TestInputIsTyped(t *testing.T) {
	stdout, _, status := ctxterm(t, "a line\n", "--", "sh", "-c", `read x; echo "got $x"; cat; exit 5`)
	if !strings.Contains(stdout, "got a line\n") || status != 5 {
		t.Errorf("%q, %d", stdout, status)
	}
}

// On a terminal, that of another ctxterm, it takes its size and its keys, and
// leaves it as it was.
func TestOnATerminal(t *testing.T) {
	inner := `RUN_CTXTERM=1 "$0" -- `
	for name, c := range map[string]struct{ script, want string }{
		"the size":          {inner + "stty size", "20 90\n"},
		"a size of its own": {`RUN_CTXTERM=1 "$0" --size 70x10 -- stty size`, "10 70\n"},
		"restored":          {`a=$(stty -g); ` + inner + `true; b=$(stty -g); test "$a" = "$b" && echo same`, "same\n"},
		"raw meanwhile":     {inner + `sh -c 'stty -F /proc/$PPID/fd/0 -a | grep -ow -e -icanon'`, "-icanon\n"},
	} {
		t.Run(name, func(t *testing.T) {
			// Its input stays open: an end that nobody reads would be typed on.
			input, hold, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer hold.Close()
			stdout, stderr, status := outcome(t, input, "--size", "90x20", "--", "sh", "-c", c.script, os.Args[0])
			stdout = strings.ReplaceAll(stdout, "\r", "")
			if stdout != c.want || stderr != "" || status != 0 {
				t.Errorf("%q, %q, %d", stdout, stderr, status)
			}
		})
	}
}
