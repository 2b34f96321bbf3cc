package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArrange(t *testing.T) {
	for in, want := range map[string]string{
		"agent coder":                     "agent -- coder",
		"agent coder --idle 3s --root /t": "--root=/t agent --idle=3s -- coder",
		"--root /t agent --idle=3s coder": "--root=/t agent --idle=3s -- coder",
		"serve --log-level debug":         "--log-level=debug serve --",
		"agent -- --root":                 "agent -- --root",
		"agent --nonsense coder":          "agent --nonsense -- coder",
		"terminal coder --ro --mount /a:/b:ro --mount=/c:/d:rw --session s --root /t": "--root=/t terminal --ro --mount=/a:/b:ro --mount=/c:/d:rw --session=s -- coder",
		"--help":             "--help --",
		"agent coder --idle": "agent --idle -- coder",
	} {
		if diff := cmp.Diff(want, strings.Join(arrange(strings.Fields(in)), " ")); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--help", 0, "serve agents over Unix sockets"},
		{"--version", 0, "ctxd version"},
		{"", 0, "USAGE"},
		{"nonsense", 2, `unknown command "nonsense"`},
		{"agent", 2, "agent takes 1 arguments, not 0"},
		{"agent a b", 2, "not 2"},
		{"agent --nonsense a", 2, "nonsense"},
		{"agent ../a --root /nowhere", 2, "agent name"},
		{"agent a --root /nowhere", 1, "is not a tree"},
		{"agent a --idle -3s --root /nowhere", 2, "negative"},
		{"agent a --approval-timeout 6m --root /nowhere", 2, "not between"},
		{"serve --approval-timeout 10ms --root /nowhere", 2, "not between"},
		{"terminal", 2, "terminal takes 1 argument, not 0"},
		{"terminal --help", 0, "--workspace DIR"},
		{"terminal a --root /nowhere", 1, "is not a tree"},
		{"serve --root /nowhere --log-level loud", 2, "loud"},
	} {
		var out, errs bytes.Buffer
		code := Run(context.Background(), append([]string{"ctxd"}, strings.Fields(c.args)...), &out, &errs)
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("ctxd %s: exit %d, want %d\n%s%s", c.args, code, c.code, out.String(), errs.String())
		}
		if code != 0 && (out.Len() > 0 || strings.Count(errs.String(), "\n") > 2) {
			t.Errorf("ctxd %s: an error is one line on stderr and at most a hint:\n%s%s", c.args, out.String(), errs.String())
		}
	}
}
