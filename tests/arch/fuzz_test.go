package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fuzzed are the places where bytes from outside become something; each has a
// fuzz target.
var fuzzed = map[string]string{
	"ctxd/internal/model/anthropic FuzzEvent":    "events of Anthropic's format",
	"ctxd/internal/model/debug FuzzScript":       "scripts of debug/script",
	"ctx/internal/markdown FuzzRender":           "what models write, on a terminal",
	"ctx/internal/attach FuzzScan":               "what is typed to a terminal",
	"ctx/internal/cli FuzzReorder":               "words of a command line",
	"ctxd/internal/model/failure FuzzParse":      "what providers say of failures",
	"ctxd/internal/model/failure FuzzRetryAfter": "waits that providers ask for",
	"ctxd/internal/model/google FuzzEvent":       "events of Google's format",
	"ctxd/internal/model/openai FuzzEvent":       "events of OpenAI's format",
	"ctxd/internal/model/responses FuzzEvent":    "events of OpenAI's newer format",
	"ctxd/internal/model/transport FuzzEvents":   "event streams",
	"libctx FuzzParseName":                       "names",
	"libctx/capwire FuzzDecode":                  "requests of programs inside a run",
	"libctx/control FuzzFiles":                   "control files of agents and tools",
	"libctx/control FuzzSchema":                  "schemas of tools",
	"libctx/control FuzzTshrc":                   ".tshrc",
	"libctx/editor FuzzKeystream":                "what is typed and pasted",
	"libctx/envelope FuzzDecode":                 "invocations",
	"libctx/envelope FuzzOutput":                 "what an executable agent writes",
	"libctx/inert FuzzInert":                     "foreign text on a terminal",
	"libctx/modelwire FuzzDecodeFrame":           "frames of models",
	"libctx/modelwire FuzzDecodeRequest":         "requests to models",
	"libctx/mount FuzzParse":                     "mount tables",
	"libctx/mount FuzzParseFlag":                 "--mount",
	"libctx/price FuzzParse":                     "the table of prices",
	"libctx/prompt FuzzRender":                   "templates of prompts",
	"libctx/provider FuzzParse":                  "provider files",
	"libctx/shellsafe FuzzScript":                "shell commands that may run without a question",
	"libctx/skill FuzzFront":                     "front matter of skills",
	"libctx/policy FuzzParse":                    "policies",
	"libctx/procid FuzzParse":                    "/proc/PID/stat",
	"libctx/sandbox FuzzParseEntry":              "what the entry step is told",
	"libctx/session FuzzDecodeIndex":             "the index of a ledger",
	"libctx/session FuzzDecodeRecord":            "one record",
	"libctx/session FuzzLedger":                  "all files of a session",
	"libctx/procid FuzzParseStatus":              "/proc/PID/status",
	"libctx/supervise FuzzParseHolder":           "the lock of a terminal",
	"libctx/supervise FuzzParseUnit":             "names of units",
	"libctx/supervise FuzzUnitGroups":            "/proc/PID/cgroup",
	"libctx/terminal FuzzParseEvent":             "events of terminals",
	"libctx/terminal FuzzParseMeta":              "what is kept of a terminal",
	"libctx/terminal FuzzParseReceipt":           "receipts of launches",
	"libctx/termwire FuzzDecodeFrame":            "frames of terminals",
	"libctx/termwire FuzzDecodeRequest":          "requests to terminals",
	"libctx/termwire FuzzParseSize":              "sizes of terminals",
	"libctx/toolshell/command FuzzLines":         "what is typed at tsh",
	"libctx/toolwire FuzzRead":                   "what a tool writes",
	"libctx/wire FuzzDecodeFrame":                "frames",
	"libctx/wire FuzzDecodeRequest":              "requests",
	"libctx/wire FuzzLines":                      "lines",
	"libctx/workspace FuzzParseMounts":           "/proc/self/mountinfo",
	"ctxterm/internal/filter FuzzFilter":         "what programs write to terminals, and terminals answer",
	"ctxterm/internal/screen FuzzScreen":         "what programs write to terminals, on the screen",
	"tsh/internal/toolfile FuzzParse":            "files of built-in tools",
}

// Every parser has a fuzz target, and every target begins from seeds: one
// without any finds nothing and says nothing.
func TestFuzzTargets(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range goFiles(t, true) {
		for _, d := range s.ast.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Fuzz") || !strings.HasSuffix(s.path, "_test.go") {
				continue
			}
			seen[s.dir+" "+f.Name.Name] = true
			seeds := 0
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Add" {
						seeds++
					}
				}
				return true
			})
			if seeds == 0 {
				t.Errorf("%s has no seed", s.where(f))
			}
			// What was found once is kept, and is no empty folder.
			corpus := filepath.Join(root, s.dir, "testdata/fuzz", f.Name.Name)
			if kept, err := os.ReadDir(corpus); err == nil && len(kept) == 0 {
				t.Errorf("%s is empty", corpus)
			}
		}
	}
	used(t, fuzzed, seen)
}
