package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cortexfs.org/tests/internal/world"
)

// TestManualPages: every program and every group of commands has its page, which
// is well-formed, says every flag, and refers to pages that are there.
func TestManualPages(t *testing.T) {
	dir := reference(t) + "/man"
	pages := files(t, dir)
	for _, want := range []string{
		"man1/ctx.1", "man1/ctx-agent.1", "man1/ctx-provider.1", "man1/ctx-policy.1", "man1/tsh.1", "man1/ctxterm.1", "man8/ctxd.8", "man1/ctxmodel.1", "man8/ctxtool.8",
		"man5/cortexfs-control.5", "man5/cortexfs-policy.5", "man5/cortexfs-mount.5", "man5/cortexfs-session.5", "man5/cortexfs-provider.5", "man5/cortexfs-tree.5",
	} {
		if !slices.Contains(pages, want) {
			t.Errorf("there is no %s", want)
		}
	}
	refers := regexp.MustCompile(`\\fB((?:ctx|cortexfs|tsh)[a-z.-]*)\\fP\(([158])\)`)
	shown := map[string]string{}
	for _, page := range pages {
		path := filepath.Join(dir, page)
		cmd := exec.Command("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path)
		var warnings strings.Builder
		cmd.Stderr = &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v: %s", page, err, warnings.String())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range refers.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(pages, "man"+m[2]+"/"+m[1]+"."+m[2]) {
				t.Errorf("%s refers to %s(%s), which is not there", page, m[1], m[2])
			}
		}
		if !strings.Contains(string(text), day) || !strings.Contains(string(text), "CortexFS "+version) {
			t.Errorf("%s does not say of when it is", page)
		}
		shown[filepath.Base(page)] = string(text)
	}
	for page, flags := range map[string][]string{
		"ctx.1":       {"--root", "--json", "--system", "--no-color"},
		"ctx-agent.1": {"--exec", "--approve", "--supervisor", "--purge", "--reasoning"},
		"ctxd.8":      {"--idle", "--log-level", "--report"},
		"ctxmodel.1":  {"--fd", "--secrets"},
		"ctxterm.1":   {"--listen", "--clipboard"},
		"tsh.1":       {"--list", "--root"},
	} {
		for _, flag := range flags {
			if !strings.Contains(shown[page], "\\fB"+flag+"\\fP") {
				t.Errorf("%s does not explain %s", page, flag)
			}
		}
	}
}

// TestCompletions: the three shells take the scripts, and complete by them.
func TestCompletions(t *testing.T) {
	dir := reference(t) + "/completions"
	bin := world.Bin(t)
	tree := t.TempDir() + "/tree"
	for _, args := range [][]string{{"init"}, {"agent", "new", "apple", "--model", "debug/echo"}, {"agent", "new", "apricot", "--model", "debug/echo"}} {
		output(t, append([]string{bin + "/ctx", "--root", tree}, args...)...)
	}
	for _, file := range files(t, dir) {
		shell, _, _ := strings.Cut(file, "/")
		output(t, shell, "-n", filepath.Join(dir, file))
	}
	for shell, script := range map[string]string{
		"bash": `. "$1/bash/$2"; shift
			COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }
			_$1 "$1"; printf '%s\n' "${COMPREPLY[@]}"`,
		"zsh": `_describe() { printf '%s\n' "${(@)found%%:*}" }; _files() { print -- files }
			complete_it() { . "$dir/zsh/_$1" }
			dir=$1; shift; words=("$@"); CURRENT=$#; complete_it $1`,
		"fish": `source $argv[1]/fish/$argv[2].fish; complete -C (string join ' ' -- $argv[2..-1]) | string replace -r '\t.*' ''`,
	} {
		for line, want := range map[string]string{
			"ctx agent s":              "send",
			"ctx agent show ap":        "apricot",
			"ctx agent send --session": "--session",
			"ctxd se":                  "serve",
			"ctxd agent --id":          "--idle",
			"tsh --li":                 "--list",
			"tsh lo":                   "load",
		} {
			args := []string{shell, "-c", script}
			if shell != "fish" {
				args = append(args, shell)
			}
			cmd := exec.Command(args[0], append(append(args[1:], dir), strings.Fields(line)...)...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CTX_ROOT="+tree, "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if err != nil || !slices.Contains(strings.Fields(string(out)), want) {
				t.Errorf("%s: %s: %v: no %s in %q", shell, line, err, want, out)
			}
		}
	}
}
