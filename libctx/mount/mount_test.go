package mount

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/linefile"
	"cortexfs.org/libctx/paths"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var accepted = []string{
	"",
	"/ctx\t/ctx\tro\t-\n",
	"/ctx\t/ctx\tro\tnosuid,nodev\n/ctx/home/1000/agent/a\t/home/agent\trw\tnosuid,nodev\n",
	"/ctx/tool\t/ctx/tool\tro\tnoexec\n",
	"/ctx/shared/docs\t/ctx/shared/docs\trw\trbind,nosuid\n",
	"/home/me/my data\t/data\trw\tbind,noexec\n",
	"/srv/ü\t/mnt/a\tro\tnodev\n/srv\t/mnt\trw\t-\n",
	"/\t/host\tro\t-\n",
}

var refused = []struct {
	text  string
	line  int
	token string
}{
	{"/a /a ro -\n", 1, "/a /a ro -"},
	{"/a\t/a\tro\n", 1, "/a\t/a\tro"},
	{"/a\t/a\tro\t-\t-\n", 1, "/a\t/a\tro\t-\t-"},
	{"/a\t\t/a\tro\t-\n", 1, "/a\t\t/a\tro\t-"},
	{"/a\t/a\tro\t-\n\n", 2, ""},
	{"# x\n", 1, "# x"},
	{"a\t/a\tro\t-\n", 1, "a"},
	{"/a\ta\tro\t-\n", 1, "a"},
	{"/a/../b\t/a\tro\t-\n", 1, "/a/../b"},
	{"/a\t/a/\tro\t-\n", 1, "/a/"},
	{"/a\t/a//b\tro\t-\n", 1, "/a//b"},
	{"\t/a\tro\t-\n", 1, "\t/a\tro\t-"},
	{"/a\x1b\t/a\tro\t-\n", 1, "/a\x1b"},
	{"/a\t/a\tRO\t-\n", 1, "RO"},
	{"/a\t/a\tro\t\n", 1, ""},
	{"/a\t/a\tro\texec\n", 1, "exec"},
	{"/a\t/a\tro\tbind,bind\n", 1, "bind"},
	{"/a\t/a\tro\tbind,rbind\n", 1, "bind,rbind"},
	{"/a\t/a\tro\tbind, nodev\n", 1, " nodev"},
	{"/a\t/a\tro\t-,nodev\n", 1, "-"},
	{"/a\t/a\tro\t-\n/b\t/a\trw\t-\n", 2, "/a"},
	{"/a\t/\tro\t-\n", 1, "/"},
	{"/a\t/etc\tro\t-\n", 1, "/etc"},
	{"/a\t/usr/local\tro\t-\n", 1, "/usr/local"},
	{"/a\t/home/agent/x\tro\t-\n", 1, "/home/agent/x"},
	{"/a\t/workspace/x\tro\t-\n", 1, "/workspace/x"},
	{"/ctx\t/ctx\trw\t-\n", 1, "/ctx"},
	{"/a\t/ctx/agent/b.d\trw\t-\n", 1, "/ctx/agent/b.d"},
	{"/a\t/a\tro\t-", 1, "/a\t/a\tro\t-"},
	{"/a\t/a\tro\t-\r\n", 1, ""},
}

func TestParse(t *testing.T) {
	for _, text := range accepted {
		table, err := Parse([]byte(text))
		if err != nil || string(table.Text()) != text {
			t.Errorf("%q: %q, %v", text, table.Text(), err)
		}
	}
	for _, c := range refused {
		table, err := Parse([]byte(c.text))
		var e *linefile.Error
		if !errors.As(err, &e) || errdefs.KindOf(err) != errdefs.Invalid || e.Line != c.line || e.Token != c.token || table != nil {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	var many strings.Builder
	for i := range libctx.MaxMounts + 1 {
		fmt.Fprintf(&many, "/a\t/m/%d\tro\t-\n", i)
	}
	if _, err := Parse([]byte(many.String())); err == nil {
		t.Error("a table of any length was accepted")
	}
}

func TestDefault(t *testing.T) {
	table := Default(1000, "coder")
	again, err := Parse(table.Text())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(table, again); d != "" {
		t.Error(d)
	}
	const want = "/ctx\t/ctx\tro\tnosuid,nodev\n/ctx/home/1000/agent/coder\t/home/agent\trw\tnosuid,nodev\n"
	if got := string(table.Text()); got != want {
		t.Errorf("%q", got)
	}
}

func TestCovering(t *testing.T) {
	table, err := Parse([]byte("/ctx\t/ctx\tro\t-\n/ctx/home/1/tool\t/ctx/home/1/tool\tro\tnoexec\n/srv\t/data\trw\t-\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/ctx/tool/fs.read":       "/ctx",
		"/ctx":                    "/ctx",
		"/ctx/home/1/tool/x":      "/ctx/home/1/tool",
		"/ctx/home/1/tool":        "/ctx/home/1/tool",
		"/ctx/home/1/toolbox/x":   "/ctx",
		"/data/a/../b":            "/data",
		"/data/../ctx/home/1/../": "/ctx",
		"/ctxx":                   "",
		"/":                       "",
		"":                        "",
		"data/x":                  "",
		"/workspace/x":            "",
	} {
		l, ok := table.Covering(path)
		if ok != (want != "") || l.Target != want {
			t.Errorf("%q is covered by %q, want %q", path, l.Target, want)
		}
	}
	if l, _ := table.Covering("/ctx/home/1/tool/x"); !l.NoExec() {
		t.Error("noexec was lost")
	}
	if l, _ := table.Covering("/ctx/tool/x"); l.NoExec() {
		t.Error("noexec came from nowhere")
	}
}

func TestCheckTarget(t *testing.T) {
	for _, good := range []string{"/data", "/mnt/x", "/opt", "/srv/a b", "/tmp/x", "/ctxx", "/var/lib/x", "/homes"} {
		if err := CheckTarget(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "/", "x", "/bin", "/ctx", "/ctx/tool", "/dev", "/dev/shm", "/etc", "/etc/x", "/home", "/home/agent", "/lib", "/lib64", "/lib64/x",
		"/proc", "/run", "/run/x", "/usr", "/usr/local/bin", "/workspace", "/sys/x", "/sbin", "/a/../etc", "//etc", "/./etc", "/data/", "/a\nb", "/a\tb",
	} {
		if err := CheckTarget(bad); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseFlag(t *testing.T) {
	l, err := ParseFlag("/home/a/src:/src:ro")
	if err != nil || l.Source != "/home/a/src" || l.Target != "/src" || !l.ReadOnly {
		t.Errorf("%v, %v", l, err)
	}
	if again, err := Parse(Table{l}.Text()); err != nil || len(again) != 1 {
		t.Errorf("the line of a flag is no line of a table: %v", err)
	}
	if l, err := ParseFlag("/a:/b:rw"); err != nil || l.ReadOnly {
		t.Errorf("%v, %v", l, err)
	}
	for _, bad := range []string{"", "/a", "/a:/b", "/a:/b:", "/a:/b:rx", "a:/b:ro", "/a:b:ro", "/a:/etc:ro", "/a:/b:ro:noexec", "/a\n:/b:ro", ":/b:ro", "/a:/\xdc:ro"} {
		if _, err := ParseFlag(bad); errdefs.KindOf(err) != errdefs.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLinesSurviveWriting(t *testing.T) {
	dir := rapid.StringMatching(`(/[A-Za-z0-9_ü ]{1,8}){1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		var want Table
		for i := range rapid.IntRange(0, 5).Draw(t, "lines") {
			l := Line{Source: dir.Draw(t, "source"), Target: fmt.Sprintf("/m%d", i) + dir.Draw(t, "target"), ReadOnly: rapid.Bool().Draw(t, "ro")}
			l.Options = rapid.SampledFrom([][]string{nil, {"bind"}, {"noexec", "rbind"}, {"nosuid", "nodev", "noexec"}}).Draw(t, "options")
			want = append(want, l)
		}
		got, err := Parse(want.Text())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		for _, l := range want {
			if c, ok := got.Covering(l.Target + "/x"); !ok || c.Target != l.Target && len(c.Target) < len(l.Target) {
				t.Fatalf("%s/x is covered by %q", l.Target, c.Target)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range accepted {
		f.Add([]byte(text))
	}
	for _, c := range refused {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Parse(text)
		if err != nil {
			if errdefs.KindOf(err) != errdefs.Invalid || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
				t.Fatalf("%q", err)
			}
			return
		}
		if !bytes.Equal(table.Text(), text) {
			t.Fatalf("%q is written as %q", text, table.Text())
		}
		for _, l := range table {
			own := l.Target == paths.InHome || paths.Below(l.Target, paths.InRoot)
			if err := CheckTarget(l.Target); !own && err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzParseFlag(f *testing.F) {
	for _, s := range []string{"/a:/b:ro", "/a b:/c:rw", "/a:/etc:ro", "a:b:c", "::", "/a:/b/../ctx:ro", "/a:/b:ro:x", "/:/\xdc:ro"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseFlag(s)
		if err != nil {
			return
		}
		if _, err := Parse(Table{l}.Text()); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
