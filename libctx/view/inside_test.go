package view

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"github.com/go-json-experiment/json/jsontext"
)

// searchVariable tells the test below that it runs inside, with this CTX_PATH.
const searchVariable = "VIEW_TEST_SEARCH"

// TestInside is also what runs inside: it prints what it sees there.
func TestInside(t *testing.T) {
	if search, inside := os.LookupEnv(searchVariable); inside {
		look(search)
		return
	}
	own := "/ctx/home/" + uid() + "/tool"
	for name, c := range map[string]struct {
		search string
		change func(w *world) // of the tree, after its view was prepared
		args   []string       // of bwrap
		want   string
	}{
		"as prepared":            {want: "tools [calc]; calc /ctx/tool/calc; none tool_not_found"},
		"no sandbox":             {args: []string{"--bind", "@VIEW", "/ctx"}, want: "ECONNREFUSED /ctx is not mounted read-only"},
		"tools that can change":  {args: []string{"--bind", "@TREE/tool", "/ctx/tool"}, want: "tools [calc]; calc not_regular; none tool_not_found"},
		"a path that leads away": {search: "/ctx/elsewhere", want: "tools []; calc tool_not_found; none tool_not_found"},
		"a shorter path":         {search: own, want: "tools []; calc tool_not_found; none tool_not_found"},
		"control that can change": {
			args: []string{"--bind", "@TREE/agent/coder.d", "/ctx/agent/coder.d"}, want: "EACCES agent/coder.d: is not mounted read-only",
		},
		"a policy that was taken back": {
			change: func(w *world) { w.control("coder", map[string]string{"policy": "allow coder_t tool:tsh execute\n"}) },
			args:   live, want: "tools [calc]; calc agent_policy; none tool_not_found",
		},
		"a path that was taken back": {
			search: "/ctx/tool", change: func(w *world) { w.control("coder", map[string]string{"path": own + "\n"}) },
			args: live, want: "tools []; calc tool_not_found; none tool_not_found",
		},
		"what a person has to allow": {
			change: func(w *world) { w.control("coder", map[string]string{"approval": "ask\n"}) },
			args:   live, want: "tools [calc]; calc is to be asked; none tool_not_found",
		},
		"a loose control": {
			change: func(w *world) { w.ok(os.Chmod(w.path("agent/coder.d/perm"), 0o666)) },
			args:   live, want: "EACCES agent/coder.d/perm: can be written by others",
		},
		"a control that is a link": {
			change: func(w *world) { w.relink("agent/coder.d/perm") },
			args:   live, want: "EACCES agent/coder.d/perm: is a link",
		},
		"a control that does not parse": {
			change: func(w *world) { w.control("coder", map[string]string{"perm": "all\n"}) },
			args:   live, want: "EINVAL agent/coder.d/perm",
		},
		"whoever the files name": {
			change: func(w *world) { w.control("coder", map[string]string{"owner": "4711\n", "gid": "4711\n"}) },
			args:   live, want: "tools [calc]; calc /ctx/tool/calc; none tool_not_found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.dir("home/" + uid() + "/tool")
			view, err := w.load().Prepare(w.Layout, true)
			w.ok(err)
			defer view.Release()
			if c.change != nil {
				c.change(w)
			}
			self, err := os.Executable()
			w.ok(err)
			args := []string{"--unshare-user", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64",
				"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", "@VIEW", "/ctx"}
			args = append(args, c.args...)
			args = append(args, "--ro-bind", self, "/test", "--setenv", searchVariable, c.search, "/test", "-test.run", "^TestInside$")
			for i, a := range args {
				args[i] = strings.NewReplacer("@VIEW", view.Dir, "@TREE", w.Root).Replace(a)
			}
			out, err := exec.Command("bwrap", args...).CombinedOutput()
			got, _, _ := strings.Cut(string(out), "\n")
			if err != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("%v: %s\nwant %s", err, out, c.want)
			}
		})
	}
}

// live shows the control files themselves in the place of their copies.
var live = []string{"--ro-bind", "@TREE/agent/coder.d", "/ctx/agent/coder.d"}

func look(search string) {
	var dirs []string
	if search != "" {
		dirs = filepath.SplitList(search)
	}
	in, err := OpenInside("/ctx", "coder", dirs)
	if err != nil {
		fmt.Printf("%s %s\n", errdefs.KindOf(err), strings.TrimPrefix(err.Error(), "agent coder: "))
		return
	}
	defer in.Close()
	tools, err := in.Tools()
	fmt.Printf("tools %v", tools)
	if err != nil {
		fmt.Printf(" %v", err)
	}
	for _, name := range []string{"calc", "none"} {
		tool := in.Lookup(libctx.Tool(name))
		d := admit.Decide(in.Facts(), tool.Tool, admit.Call{Name: admit.Shell, Arguments: jsontext.Value(`{"args":["` + name + `"]}`)})
		tool.Close()
		word := string(d.Code)
		switch {
		case d.Allowed:
			word = tool.Path
		case d.Ask:
			word = "is to be asked"
		}
		fmt.Printf("; %s %s", name, word)
	}
	fmt.Println()
}
