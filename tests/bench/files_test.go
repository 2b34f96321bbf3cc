package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// files measures file tools as programs of their own, beside the programs that
// people use for the same, on a tree of 5,000 files and 40 MB.
func (s *suite) files() {
	s.head("file tools, outside of sandboxes")
	dir := filepath.Join(s.w.Dir, "large")
	for i := range 5000 {
		p := filepath.Join(dir, fmt.Sprintf("d%02d/e%02d/file-%04d.go", i%50, i/50%10, i))
		s.must(os.MkdirAll(filepath.Dir(p), 0o755))
		line := fmt.Sprintf("func Name%d(argument string) (result int, err error) { return %d, nil }\n", i, i*i)
		s.must(os.WriteFile(p, []byte(strings.Repeat(line, 8000/len(line))), 0o644))
	}
	big := filepath.Join(dir, "big")
	s.must(os.WriteFile(big, []byte(strings.Repeat("a line of text that is quite ordinary, as they go\n", 16<<20/50)), 0o644))

	tool := func(args ...string) func() { return func() { s.program(filepath.Join(s.w.Bin, "ctxtool"), args...) } }
	t := s.repeat(3, 30,
		tool("fs.read", big, "--lines", "10"), func() { s.program("cat", big) },
		tool("fs.read", filepath.Join(dir, "d00/e00/file-0000.go")), func() { s.program("cat", filepath.Join(dir, "d00/e00/file-0000.go")) },
	)
	s.times("fs.read, 16 MiB, hashed", t[0], t[1], "cat of the whole file")
	s.times("fs.read, 8 KB", t[2], t[3], "cat")
	if _, err := exec.LookPath("rg"); err != nil {
		s.row("  fs.search", "", "", "", "", "", "not measured: ripgrep is not installed (package ripgrep)")
		return
	}
	for _, c := range []struct {
		name string
		tool []string
		rg   []string
	}{
		{"a rare text", []string{"Name4999(arg"}, []string{"-F", "Name4999(arg"}},
		{"an absent text", []string{"NameXYZ"}, []string{"-F", "NameXYZ"}},
		{"an absent text, any case", []string{"namexyz", "--case", "ignore"}, []string{"-F", "-i", "namexyz"}},
		{"an expression with a text", []string{`func Name49\d\d\(x`, "--mode", "regex"}, []string{`func Name49\d\d\(x`}},
		{"an expression without one", []string{`[a-z]+[0-9]{9}[A-Z]`, "--mode", "regex"}, []string{`[a-z]+[0-9]{9}[A-Z]`}},
	} {
		t := s.repeat(1, 10,
			tool(append([]string{"fs.search", c.tool[0], dir}, c.tool[1:]...)...), func() { s.program("rg", append(c.rg, dir)...) },
		)
		s.times("fs.search, "+c.name, t[0], t[1], "rg")
	}
}

// program runs a program and drops what it prints. Exit code 1 is an answer too:
// nothing was found.
func (s *suite) program(name string, args ...string) {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	err := cmd.Run()
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		s.Errorf("%s %q: %v", name, args, err)
	}
}
