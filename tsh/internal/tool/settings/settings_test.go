package settings

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
)

// tree is a tree with the tool tsh, and the environment of somebody in it.
func tree(t *testing.T) (config.Shell, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "tool", "tsh.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return config.Shell{Paths: paths.Env{CTXRoot: root, Home: root, UID: 4711}}, filepath.Join(dir, "config")
}

func call(conf config.Shell, args string) (string, error) {
	out := new(tool.Output)
	err := Tsh(conf).Call(context.Background(), jsontext.Value(args), out)
	return out.Text(), err
}

func TestShowAndChange(t *testing.T) {
	conf, file := tree(t)
	const standard = "max_loaded_tools=64\ncache_capacity=32\nwindow_percent=1\n"
	if got, err := call(conf, `{}`); got != standard || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("showing made a file")
	}
	if err := os.WriteFile(file, []byte("# mine\nmax_loaded_tools=3\n# end"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, file string }{
		{`{}`, "# mine\nmax_loaded_tools=3\n# end"},
		{`{"max_loaded_tools":5}`, "# mine\nmax_loaded_tools=5\n# end\n"},
		{`{"args":["--window_percent","7","--max_loaded_tools=6"]}`, "# mine\nmax_loaded_tools=6\n# end\nwindow_percent=7\n"},
	} {
		got, err := call(conf, c.args)
		text, _ := os.ReadFile(file)
		if err != nil || string(text) != c.file || strings.Count(got, "\n") != 3 {
			t.Errorf("%s: %q, %v, the file is %q", c.args, got, err, text)
		}
	}
	before, _ := os.ReadFile(file)
	for _, args := range []string{`{"max_loaded_tools":0}`, `{"max_loaded_tools":1025}`, `{"window_percent":101}`, `{"max_loaded_tools":9,"window_percent":101}`, `{"speed":1}`, `{"max_loaded_tools":null}`, `{"max_loaded_tools":"1"}`, `{"args":["3"]}`} {
		if got, err := call(conf, args); !errdefs.Is(err, errdefs.Invalid) || got != "" {
			t.Errorf("%s: %q, %v", args, got, err)
		}
	}
	// From inside an agent it is shown and stays as it is.
	conf.Agent, conf.Path = "coder", "/ctx/tool"
	if got, err := call(conf, `{}`); !strings.HasPrefix(got, "max_loaded_tools=6\n") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := call(conf, `{"max_loaded_tools":1}`); !errdefs.Is(err, errdefs.Denied) {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != string(before) {
		t.Errorf("the file has become %q", text)
	}
	// A file that does not parse is told, not repaired.
	conf.Agent, conf.Path = "", ""
	if err := os.WriteFile(file, []byte("\nspeed=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{`{}`, `{"max_loaded_tools":1}`} {
		if _, err := call(conf, args); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "tsh.d/config: line 2") {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := os.RemoveAll(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if _, err := call(conf, `{}`); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("%v", err)
	}
}
