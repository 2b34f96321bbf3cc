// Package script runs the scripts in testdata: what a person types, what the
// programs print, and how they end. Each script has a tree, a home and a
// workspace of its own.
package script

import (
	"os"
	"path/filepath"
	"testing"

	"cortexfs.org/tests/internal/world"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) { world.Main(m) }

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			w := world.Empty(env.T().(testing.TB))
			if err := move(env.WorkDir, w.Workspace); err != nil {
				return err
			}
			env.Cd = w.Workspace
			for _, kv := range []struct{ k, v string }{
				{"HOME", w.Home}, {"XDG_RUNTIME_DIR", w.Runtime}, {"CTX_ROOT", w.Root}, {"BIN", w.Bin},
				{"PATH", w.Bin + ":/usr/bin:/bin"}, {"W", w.Dir}, {"TERM", "dumb"}, {"LANG", "C.UTF-8"},
			} {
				env.Setenv(kv.k, kv.v)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"esc":   esc,
		},
	})
}

// exits CODE PROGRAM ARGS… runs a program that must end with exactly that code;
// stdout and stderr are then checked as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = exitCode(err)
	}
	if code != args[0] {
		ts.Fatalf("exit %s, want %s", code, args[0])
	}
}

// esc FILE replaces \e, \r and \u202e in a file by the characters.
func esc(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	text := ts.ReadFile(path)
	ts.Check(os.WriteFile(filepath.Clean(path), []byte(unescape(text)), 0o644))
}
