package shell

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/builtin/program"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"cortexfs.org/tsh/internal/tool"
	"cortexfs.org/tsh/internal/tool/fs"
	"cortexfs.org/tsh/internal/tool/spill"
	. "cortexfs.org/tsh/internal/tool/tooltest"
	"pgregory.net/rapid"
)

func TestBash(t *testing.T) {
	Place(t, map[string]string{"file.sh": "echo \"from $0 with $#: $2\"\n"})
	for _, c := range []struct {
		args map[string]any
		text string
		kind errdefs.Kind
	}{
		{map[string]any{"script": "set -o pipefail; a=(1 2); echo ${#a[@]}"}, "2\n", ""},
		{map[string]any{"script": `echo "$#: $2"`, "args": []string{"a", "b c"}}, "2: b c\n", ""},
		{map[string]any{"script": "exit 3"}, "", errdefs.IO},
		{map[string]any{"script": "-x 2>/dev/null || echo a command, not an option"}, "a command, not an option\n", ""},
		{map[string]any{"args": []string{"-c", `echo "$1"`, "bash", "two  words"}}, "two  words\n", ""},
		{map[string]any{"args": []string{"file.sh", "x", "*"}}, "from file.sh with 2: *\n", ""},
		{map[string]any{"args": []string{"--", "file.sh", "x", "--flag"}}, "from file.sh with 2: --flag\n", ""},
	} {
		out, err := Call(t, Bash(Config{Environ: environ}), c.args)
		if out.Text() != c.text || errdefs.KindOf(err) != c.kind || out.ExitCode() == nil {
			t.Errorf("%v: %q, %v", c.args, out.Content(), err)
		}
	}
	for _, a := range []map[string]any{
		{}, {"script": ""}, {"args": []string{}}, {"args": "x"}, {"script": "a\x00"}, {"args": []string{"a\x00"}}, {"script": "true", "timeout_ms": 0}, {"cmd": "true"},
	} {
		_, err := Call(t, Bash(Config{Environ: environ}), a)
		MustRefuse(t, err, errdefs.Invalid)
	}
}

// A program gets its words as they are, or none.
func TestProgram(t *testing.T) {
	tool := Program("bash", Config{Environ: environ})
	for _, c := range []struct {
		args map[string]any
		text string
		kind errdefs.Kind
	}{
		{map[string]any{}, "", ""}, // its input is empty
		{map[string]any{"args": []string{}}, "", ""},
		{map[string]any{"args": []string{"-c", `test -t 0 || echo "$0 $1"`, "a b", "*"}}, "a b *\n", ""},
		{map[string]any{"args": []string{"-c", "exit 3"}}, "", errdefs.IO},
		{map[string]any{"args": []string{"-c", "exec sleep 100"}, "timeout_ms": 50}, "", errdefs.Timeout},
		{map[string]any{"args": "x"}, "", errdefs.Invalid},
		{map[string]any{"script": "true"}, "", errdefs.Invalid},
	} {
		out, err := Call(t, tool, c.args)
		if out.Text() != c.text || errdefs.KindOf(err) != c.kind {
			t.Errorf("%v: %q, %v", c.args, out.Content(), err)
		}
	}
}

// TestBashIsMissing runs this test where there is no bash.
func TestBashIsMissing(t *testing.T) {
	if _, err := program.Find("bash"); err != nil {
		out, err := Call(t, Bash(Config{Environ: environ}), map[string]any{"script": "true"})
		MustRefuse(t, err, errdefs.Unavailable, "bash is not installed")
		for _, name := range []libctx.Tool{"bash", "tmux", "zellij"} {
			_, err := Call(t, Program(name, Config{Environ: environ}), map[string]any{"args": []string{"--version"}})
			MustRefuse(t, err, errdefs.Unavailable, string(name)+" is not installed")
			MustRefuse(t, Program(name, Config{}).Become(nil), errdefs.Unavailable, string(name)+" is not installed")
		}
		fmt.Print(out.Content())
		return
	}
	self, err := os.Executable()
	Must(t, err)
	empty := t.TempDir()
	out, err := exec.Command("bwrap", "--unshare-user", "--ro-bind", self, "/test", "--ro-bind", empty, "/bin",
		"--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
		"/test", "-test.run", "^TestBashIsMissing$").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLongOutputIsKept(t *testing.T) {
	conf := Config{Environ: environ, Spill: spill.Place{Home: t.TempDir(), Dir: "cache/spill/s", Run: "01RUN"}}
	run := func(line string) (*tool.Output, error) {
		return Call(t, Exec(conf), map[string]any{"cmd": line})
	}
	out, err := run("seq 1 20000; printf 'last \\377 line'")
	if err != nil || !out.IsTruncated() || len(out.Notes()) != 2 || len(out.Content()) > libctx.MaxToolResult {
		t.Fatalf("%q, %v", out.Notes(), err)
	}
	var bytes, lines int
	var path string
	if _, err := fmt.Sscanf(out.Notes()[1], "[full output, %d bytes in %d lines: %s", &bytes, &lines, &path); err != nil {
		t.Fatalf("%q: %v", out.Notes()[1], err)
	}
	path = strings.TrimSuffix(path, ";")
	if want := 108894 + len("last \xff line"); bytes != want { // as they were written, before marks
		t.Errorf("%d bytes, not %d", bytes, want)
	}
	if lines != 20001 || !strings.HasPrefix(path, conf.Spill.Home+"/cache/spill/s/01RUN-") {
		t.Errorf("%d lines in %s", lines, path)
	}
	page, err := Call(t, fs.Read, map[string]any{"path": path, "start": 9999, "lines": 2})
	if err != nil || page.Text() != "9999\n10000\n" {
		t.Errorf("%q, %v", page.Text(), err)
	}
	page, err = Call(t, fs.Read, map[string]any{"path": path, "start": 20001})
	if err != nil || page.Text() != "last \ufffd line" {
		t.Errorf("%q, %v", page.Text(), err)
	}
	// So is what a failed one said.
	if out, err = run("seq 1 20000; exit 9"); !errdefs.Is(err, errdefs.IO) || len(out.Notes()) != 2 {
		t.Errorf("%q, %v", out.Notes(), err)
	}
	// A short one needs no file.
	if out, err = run("echo short"); err != nil || len(out.Notes()) != 1 {
		t.Errorf("%q, %v", out.Notes(), err)
	}
	// One that is too long for a file is kept up to the bound.
	out, err = Call(t, Exec(conf), map[string]any{"cmd": "head -c 20000000 /dev/zero"})
	if err != nil || !strings.Contains(out.Content(), "[first 16 MiB, as text, of an output of 20000000 bytes: ") {
		t.Errorf("%q, %v", out.Notes(), err)
	}
	entries, err := os.ReadDir(conf.Spill.Home + "/cache/spill/s")
	if err != nil || len(entries) != 3 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// A line of any length can be read in full, by the notes alone.
func TestOneLongLineCanBeRead(t *testing.T) {
	conf := Config{Environ: environ, Spill: spill.Place{Home: t.TempDir(), Dir: "cache/spill/s"}}
	out, err := Call(t, Exec(conf), map[string]any{"cmd": "printf 'é%.0s' $(seq 1 100000)"})
	Must(t, err)
	path := regexp.MustCompile(`: (/\S+);`).FindStringSubmatch(out.Content())[1]
	var all strings.Builder
	for column := 1; column > 0; {
		page, err := Call(t, fs.Read, map[string]any{"path": path, "start": 1, "column": column})
		Must(t, err)
		all.WriteString(page.Text())
		column = 0
		if m := regexp.MustCompile(`start=1 column=(\d+)\]`).FindStringSubmatch(page.Content()); m != nil {
			column, _ = strconv.Atoi(m[1])
		}
	}
	if all.String() != strings.Repeat("é", 100000) {
		t.Errorf("%d bytes came back", all.Len())
	}
}

// What a command writes goes out as it comes too, up to a bound: the call may
// not live to tell.
func TestLive(t *testing.T) {
	var live strings.Builder
	conf := Config{Environ: environ, Live: &live}
	_, err := Call(t, Exec(conf), map[string]any{"cmd": "printf 'a\\377b'; head -c 100000 /dev/zero"})
	Must(t, err)
	if got := live.String(); !strings.HasPrefix(got, "a\ufffdb\u2400") || len(got) != libctx.MaxToolResult {
		t.Errorf("%.20q, %d bytes", got, len(got))
	}
}

// Whatever pieces bytes come in, the text is the same.
func TestCleanerPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.SampledFrom([]byte("a\n\x00\xff\xe2\x82\xac\xf0\x9f")), 0, 30).Draw(t, "bytes")
		var b strings.Builder
		c := &cleaner{w: &b}
		for rest := all; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			c.Write(rest[:n])
			rest = rest[n:]
		}
		c.flush()
		// How many marks stand for a run of bytes that are no text may depend on the
		// pieces; nothing else may.
		squeeze := regexp.MustCompile("\ufffd+")
		if got, want := squeeze.ReplaceAllString(b.String(), "\ufffd"), squeeze.ReplaceAllString(wire.Clean(all), "\ufffd"); got != want {
			t.Fatalf("%q becomes %q, not %q", all, got, want)
		}
	})
}

func TestProgressBar(t *testing.T) {
	conf := Config{Environ: environ, Spill: spill.Place{Home: t.TempDir(), Dir: "d"}}
	out, err := Call(t, Exec(conf), map[string]any{"cmd": `printf 'begin\n'; i=0; while [ $i -le 100 ]; do printf '\r%3d%% done' $i; i=$((i+1)); done; printf '\nend\r\n'`})
	if err != nil || out.Text() != "begin\n100% done\nend\r\n" || len(out.Notes()) != 3 || !strings.Contains(out.Notes()[1], "carriage returns") {
		t.Errorf("%q, %v", out.Content(), err)
	}
	if _, path, ok := strings.Cut(out.Notes()[2], "lines: "); !ok {
		t.Errorf("%q", out.Notes())
	} else if text, err := os.ReadFile(strings.TrimSuffix(path, "; fs.read pages it]")); err != nil || !strings.Contains(string(text), "\r 50% done\r") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestStubbornCommands: each ends when its time is up, however it behaves.
func TestStubbornCommands(t *testing.T) {
	for line, text := range map[string]string{
		"echo before; exec >&- 2>&-; exec sleep 100":   "before\n",
		"echo before; kill -STOP $$; echo after":       "before\n",
		"trap '' TERM; echo before; kill -STOP $$":     "before\n",
		"echo before; (kill -STOP 0); wait; sleep 100": "before\n",
	} {
		begin := time.Now()
		out, err := Call(t, Exec(Config{Environ: environ}), map[string]any{"cmd": line, "timeout_ms": 300})
		if !errdefs.Is(err, errdefs.Timeout) || !strings.HasPrefix(out.Text(), text) {
			t.Errorf("%s: %q, %v", line, out.Content(), err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", line, took)
		}
	}
	out, err := Call(t, Exec(Config{Environ: environ}), map[string]any{"cmd": "i=0; while [ $i -lt 500 ]; do sleep 100 & i=$((i+1)); done; echo $i $$"})
	var forked, group int
	if _, scan := fmt.Sscan(out.Text(), &forked, &group); scan != nil || err != nil || forked != 500 {
		t.Errorf("%q, %v", out.Content(), err)
	}
	for _, pid := range members(t, group) { // they have been killed, and may not be gone yet
		gone(t, pid)
	}
}

// members are the living processes of a group.
func members(t *testing.T, group int) (pids []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	Must(t, err)
	for _, p := range stats {
		text, _ := os.ReadFile(p)
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 3 && f[2] == fmt.Sprint(group) && f[0] != "Z" && f[0] != "X" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			Must(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}
