package output

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// terminal is a printer whose two streams are files that pass for a terminal.
func terminal(t *testing.T) (p *Printer, read func() (out, errs string)) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.OpenFile(dir+"/"+name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	p = &Printer{Out: open("out"), Err: open("err"), OutTTY: true, ErrTTY: true}
	return p, func() (string, string) {
		out, err := os.ReadFile(dir + "/out")
		if err != nil {
			t.Fatal(err)
		}
		errs, err := os.ReadFile(dir + "/err")
		if err != nil {
			t.Fatal(err)
		}
		return string(out), string(errs)
	}
}

func TestPage(t *testing.T) {
	plus := Pager{Command: "sed s/^/+/", Chosen: true}
	for name, c := range map[string]struct {
		with      Pager
		change    func(*Printer)
		out, errs string
	}{
		"paged":                {plus, func(*Printer) {}, "+a\n+beside\n+b\n", "before\nafter\n"},
		"errors elsewhere":     {plus, func(p *Printer) { p.ErrTTY = false }, "+a\n+b\n", "before\nbeside\nafter\n"},
		"no terminal":          {plus, func(p *Printer) { p.OutTTY = false }, "a\nb\n", "before\nbeside\nafter\n"},
		"json":                 {plus, func(p *Printer) { p.JSON = true }, "a\nb\n", "before\nbeside\nafter\n"},
		"none":                 {Pager{Chosen: true}, func(*Printer) {}, "a\nb\n", "before\nbeside\nafter\n"},
		"none on this machine": {Pager{Command: "/nonexistent/less"}, func(*Printer) {}, "a\nb\n", "before\nbeside\nafter\n"},
		"not there":            {Pager{Command: "/nonexistent/less -x", Chosen: true}, func(*Printer) {}, "a\nb\n", "before\npager /nonexistent/less: fork/exec /nonexistent/less: no such file or directory\nbeside\nafter\n"},
		"fails at the end":     {Pager{Command: "sed -n p;$q3"}, func(*Printer) {}, "a\nbeside\nb\n", "before\nafter\n"},
		"environment":          {Pager{Command: `awk {print(ENVIRON["LESS"])}`, Env: []string{"LESS=FRX"}}, func(*Printer) {}, "FRX\nFRX\nFRX\n", "before\nafter\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p, read := terminal(t)
			c.change(p)
			end := p.Page(c.with)
			p.Warn("before")
			p.Text("a\n")
			p.Warn("beside")
			p.Text("b\n")
			end()
			p.Warn("after")
			if out, errs := read(); out != c.out || errs != c.errs || p.Failed() != nil {
				t.Errorf("%q, %q, %v\nwant %q, %q", out, errs, p.Failed(), c.out, c.errs)
			}
		})
	}
}

// A person who has read enough leaves the pager.
func TestPageLeft(t *testing.T) {
	p, read := terminal(t)
	end := p.Page(Pager{Command: "head -n 1"})
	for p.Failed() == nil {
		p.Text(strings.Repeat("line\n", 1000))
	}
	end()
	if out, errs := read(); out != "line\n" || errs != "" || !Closed(p.Failed()) || !p.Paged() {
		t.Errorf("%q, %q, %v, %v", out, errs, p.Failed(), p.Paged())
	}
}

// A command without data shows no pager.
func TestPageUnused(t *testing.T) {
	p, read := terminal(t)
	end := p.Page(Pager{Command: "echo paged"})
	p.Table([]string{"NAME"}, nil)
	end()
	if out, errs := read(); out != "" || errs != "" || p.Paged() {
		t.Errorf("%q, %q", out, errs)
	}
	p.JSON = true
	end = p.Page(Pager{Command: "echo paged"})
	p.Object(jsontext.Value(`{}`))
	end()
	if out, _ := read(); out != "{}\n" {
		t.Errorf("%q", out)
	}
}
