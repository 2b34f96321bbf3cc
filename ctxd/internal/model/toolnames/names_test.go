package toolnames

import (
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/modelwire"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	var tools []modelwire.Tool
	for _, name := range []string{"a+b", "a.b", "a__b", "a_p_b", "agent.update", long + ".x", long + "__x", "tsh", "x-y", "7zip"} {
		if _, err := libctx.ParseTool(name); err != nil {
			t.Fatal(err)
		}
		tools = append(tools, modelwire.Tool{Name: libctx.Tool(name)})
	}
	n := New(tools)
	seen := map[string]bool{}
	for _, tool := range tools {
		f := n.Of(tool.Name)
		if f == "" || len(f) > 64 || strings.Trim(f, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%s is %q", tool.Name, f)
		}
		if seen[f] {
			t.Errorf("%s is %q, which is taken", tool.Name, f)
		}
		seen[f] = true
		if back := n.Back(f); back != string(tool.Name) {
			t.Errorf("%s is %q is %s", tool.Name, f, back)
		}
	}
	for tool, want := range map[libctx.Tool]string{
		"tsh": "tsh", "a__b": "a__b", "a.b": "a__b_1", "a_p_b": "a_p_b", "a+b": "a_p_b_0", "agent.update": "agent__update",
		"not.declared": "not__declared", "7zip": "_7zip", "7.z": "_7__z", "": "unknown",
	} {
		if got := n.Of(tool); got != want {
			t.Errorf("%s is %q, not %q", tool, got, want)
		}
	}
	for function, want := range map[string]string{"agent.update": "agent.update", "never__heard": "never__heard", "": "", "ä b": "ä b"} {
		if got := n.Back(function); got != want {
			t.Errorf("%q is %q, not %q", function, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a.b a__b a+b tsh")
	f.Add(fmt.Sprintf("%[1]s.x %[1]s__x %[1]s+", strings.Repeat("a", 62)))
	f.Add("a.b a__b a__b_0 a__b_1 a__b_2")
	f.Fuzz(func(t *testing.T, text string) {
		var tools []modelwire.Tool
		had := map[string]bool{}
		for _, name := range strings.Fields(text) {
			if tool, err := libctx.ParseTool(name); err == nil && !had[name] && len(tools) < 1000 {
				had[name] = true
				tools = append(tools, modelwire.Tool{Name: tool})
			}
		}
		n := New(tools)
		for _, tool := range tools {
			if f := n.Of(tool.Name); len(f) > 64 || n.Back(f) != string(tool.Name) {
				t.Fatalf("%s is %q is %q", tool.Name, f, n.Back(f))
			}
		}
	})
}
