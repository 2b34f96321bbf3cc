package arch

import (
	"go/ast"
	"testing"
)

// Only main ends the process: anything else returns, so that it can be tested
// and what is open gets closed.
func TestExitOnlyInMain(t *testing.T) {
	for _, s := range goFiles(t, false) {
		if s.ast.Name.Name == "main" {
			continue
		}
		for _, call := range append(s.calls("os", "Exit"), append(s.calls("log", "Fatal", "Fatalf"), s.calls("syscall", "Exit")...)...) {
			t.Errorf("%s: ends the process", s.where(call))
		}
	}
}

// environment are packages that read the environment without being a config
// package or a main.
var environment = map[string]string{
	"libctx/fault": "only with the build tag faults: what fails is a test's to say, in programs that know nothing of it",
	"libctx/sdk":   "stands in for the main of an agent's author",
}

func TestEnvironmentOnlyInConfig(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goFiles(t, false) {
		calls := s.calls("os", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserCacheDir", "UserConfigDir", "TempDir")
		if s.ast.Name.Name == "main" || s.ast.Name.Name == "config" {
			continue
		}
		for _, call := range calls {
			if seen[s.dir] = true; environment[s.dir] == "" {
				t.Errorf("%s: reads the environment; take it from the program's config", s.where(call))
			}
		}
	}
	used(t, environment, seen)
}

// panics are packages that may panic.
var panics = map[string]string{
	"libctx/asuser": "a thread that can not get its rights back must not go on",
}

func TestPanics(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goFiles(t, false) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
				if seen[s.dir] = true; panics[s.dir] == "" {
					t.Errorf("%s: panics", s.where(call))
				}
			}
			return true
		})
	}
	used(t, panics, seen)
}

// sleeps are packages that wait for time to pass.
var sleeps = map[string]string{
	"tests/cmd/puppet": "plays an agent that does not end",
}

func TestNoSleeping(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goFiles(t, true) {
		for _, call := range s.calls("time", "Sleep") {
			if seen[s.dir] = true; sleeps[s.dir] == "" {
				t.Errorf("%s: sleeps; wait for the event itself", s.where(call))
			}
		}
	}
	used(t, sleeps, seen)
}

// No test may pass by not running.
func TestNoSkipping(t *testing.T) {
	for _, s := range goFiles(t, true) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch sel.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				if x, ok := sel.X.(*ast.Ident); ok && (x.Name == "t" || x.Name == "b" || x.Name == "f") {
					t.Errorf("%s: skips", s.where(sel))
				}
			}
			return true
		})
	}
}
