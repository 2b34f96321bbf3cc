package arch

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const prefix = "cortexfs.org/"

// Programs import libctx and themselves, libctx imports itself.
func TestModulesAreApart(t *testing.T) {
	for _, s := range goFiles(t, true) {
		own, _, _ := strings.Cut(s.path, "/")
		for _, path := range s.imports() {
			rest, ours := strings.CutPrefix(path, prefix)
			if !ours {
				continue
			}
			if module, _, _ := strings.Cut(rest, "/"); module != own && module != "libctx" {
				t.Errorf("%s imports %s", s.path, path)
			}
		}
	}
}

// pure are packages that decide, format or parse, and touch nothing.
var pure = []string{
	"libctx/admit", "libctx/builtin", "libctx/capwire", "libctx/control", "libctx/effect", "libctx/envelope", "libctx/errdefs", "libctx/mount", "libctx/policy",
	"libctx/modelwire", "libctx/prompt", "libctx/sandbox", "libctx/shellsafe", "libctx/window", "libctx/toolshell/command", "libctx/toolshell/settings", "libctx/termwire", "libctx/toolwire", "libctx/wire", "ctxd/internal/authz", "ctx/internal/render",
	"ctx/internal/markdown", "ctxterm/internal/filter",
}

// impure are imports by which a package could touch something.
var impure = []string{
	"os", "os/exec", "os/signal", "os/user", "net", "syscall", "io/ioutil",
	"golang.org/x/sys/unix", "cortexfs.org/libctx/atomicfile", "cortexfs.org/libctx/unixsock", "cortexfs.org/libctx/procid",
}

// impureAllowed are imports of pure packages that are for names and numbers only.
var impureAllowed = map[string]string{
	"libctx/errdefs syscall": "error numbers, as constants",
}

func TestPurePackages(t *testing.T) {
	found, seen := map[string]bool{}, map[string]bool{}
	for _, s := range goFiles(t, false) {
		if !slices.Contains(pure, s.dir) {
			continue
		}
		found[s.dir] = true
		for _, path := range s.imports() {
			if !slices.Contains(impure, path) {
				continue
			}
			key := s.dir + " " + path
			if seen[key] = true; impureAllowed[key] == "" {
				t.Errorf("%s imports %s: this package may do no I/O", s.path, path)
			}
		}
	}
	for _, dir := range pure {
		if !found[dir] {
			t.Errorf("there is no package %s", dir)
		}
	}
	used(t, impureAllowed, seen)
}

// homes are dependencies that only these packages may import.
var homes = map[string]map[string]string{
	"github.com/creack/pty": {
		"ctxterm/internal/ptyproc": "makes pseudo-terminals",
	},
	"github.com/reeflective/readline": {
		"libctx/editor": "the line editor of the chat and of tsh",
	},
	"github.com/urfave/cli/v2": {
		"ctx/internal/cli":        "command line of ctx",
		"ctxd/internal/cli":       "command line of ctxd",
		"ctxd/internal/model/cli": "command line of ctxmodel",
		"ctxterm/internal/cli":    "command line of ctxterm",
		"tsh/internal/cli":        "command line of tsh",
	},
	"os/exec": {
		"ctx/internal/output":        "starts the pager that a person names",
		"ctx/internal/spawn":         "starts the activator, tries bwrap",
		"ctxd/internal/sandboxrun":   "asks bwrap what it can do",
		"ctxterm/internal/ptyproc":   "starts the program of a terminal",
		"libctx/editor":              "opens the editor that a person names",
		"packaging/internal/program": "asks programs for their help",
		"tsh/internal/tool/shell":    "runs the command of shell.exec, inside a sandbox",
	},
	"go.uber.org/zap": {},
	"go.uber.org/zap/zapcore": {
		"libctx/log": "writes log lines; zap itself would bring net/http",
	},
	"net/http": {
		"ctxd/internal/model/anthropic": "hands our transport to the provider's library",
		"ctxd/internal/model/detect":    "asks servers of models on this machine what they have",
		"ctxd/internal/model/failure":   "what an answer of HTTP says of a failure",
		"ctxd/internal/model/google":    "hands our transport to the provider's library",
		"ctxd/internal/model/openai":    "hands our transport to the provider's library",
		"ctxd/internal/model/responses": "hands our transport to the provider's library",
		"ctxd/internal/model/transport": "reaches providers",
	},
	"encoding/json": {},
	"log":           {},
	"log/slog":      {},
	"math/rand":     {},
	"plugin":        {},
	"unsafe": {
		"ctxd/internal/privilege": "hands structures to system calls that no library makes on every thread, or at all",
	},
	"C": {},
}

func TestHomesOfImports(t *testing.T) {
	for dependency, allowed := range homes {
		seen := map[string]bool{}
		for _, s := range goFiles(t, false) {
			if !slices.Contains(s.imports(), dependency) {
				continue
			}
			if seen[s.dir] = true; allowed[s.dir] == "" {
				t.Errorf("%s imports %s, which has no business there", s.path, dependency)
			}
		}
		used(t, allowed, seen)
	}
}

// What must be in no binary, whoever brings it.
var banned = []string{"net/http", "testing", "expvar", "net/rpc", "plugin", "go.uber.org/zap"}

// brought is what a library brings into the networked program that nothing there
// calls.
var brought = map[string]string{
	"net/rpc": "genai can sign with certificates by a helper program",
	"testing": "genai can replay its own tests",
}

// networked is the one program that reaches a network, by net/http; what is
// below its packages is in no other.
const (
	networked = "ctxd/cmd/ctxmodel"
	models    = prefix + "ctxd/internal/model"
)

func TestBinaries(t *testing.T) {
	for _, program := range programs {
		deps := goList(t, program, "-deps", "-f", "{{.ImportPath}}", ".")
		if !slices.Contains(deps, prefix+"libctx") || !slices.Contains(deps, "runtime") {
			t.Errorf("%s: odd list of %d packages", program, len(deps))
		}
		for _, path := range deps {
			switch {
			case program == networked && (path == "net/http" || brought[path] != ""):
			case slices.Contains(banned, path), strings.HasSuffix(path, "testing"),
				program != networked && (path == models || strings.HasPrefix(path, models+"/")):
				t.Errorf("%s contains %s", program, path)
			}
		}
	}
}

// goList runs go list in a folder of the repository; that it fails is a failure.
func goList(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join(root, dir)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v: %s", dir, err, &problem)
	}
	return strings.Fields(string(out))
}

// The tables above know every module and program there is.
func TestNothingIsForgotten(t *testing.T) {
	var found, mains []string
	for _, s := range goFiles(t, false) {
		module, _, _ := strings.Cut(s.path, "/")
		if s.ast.Name.Name == "main" && !slices.Contains(workshop, module) && !strings.Contains(s.path, "/example/") && !slices.Contains(mains, s.dir) {
			mains = append(mains, s.dir)
		}
	}
	slices.Sort(mains)
	if !slices.Equal(mains, programs) {
		t.Errorf("programs are %v, the table says %v", mains, programs)
	}
	for _, m := range strings.Fields(strings.Join(goList(t, ".", "-m", "-f", "{{.Path}}"), " ")) {
		found = append(found, strings.TrimPrefix(m, prefix))
	}
	slices.Sort(found)
	if !slices.Equal(found, modules) {
		t.Errorf("modules are %v, the table says %v", found, modules)
	}
}
