package terminals

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
)

func TestNamed(t *testing.T) {
	w := newWorld(t)
	w.kept("a-b", "c", terminal.Exited, nil)
	w.kept("a", "b-c", terminal.Exited, nil)
	w.kept("coder", "default", terminal.Exited, nil)
	for word, want := range map[string]string{
		"terminal-coder-default": "coder/default", "coder/default": "coder/default", "a/b-c": "a/b-c", "a-b/c": "a-b/c",
	} {
		if p, err := Named(w.Caller, word); err != nil || p.String() != want {
			t.Errorf("%s: %v, %v", word, p, err)
		}
	}
	for word, kind := range map[string]errdefs.Kind{
		"terminal-a-b-c": errdefs.Invalid, "terminal-coder": errdefs.NotFound, "coder": errdefs.NotFound, "": errdefs.NotFound,
		"coder/other": errdefs.NotFound, "nobody/default": errdefs.NotFound, "../x/default": errdefs.Invalid, "coder/..": errdefs.Invalid, "/": errdefs.Invalid,
	} {
		if p, err := Named(w.Caller, word); !errdefs.Is(err, kind) || errdefs.HintOf(err) == "" && kind == errdefs.NotFound {
			t.Errorf("%q: %v, %v", word, p, err)
		}
	}
	if _, err := Named(w.Caller, "terminal-a-b-c"); !strings.Contains(err.Error(), "a/b-c and a-b/c have this id") {
		t.Error(err)
	}
}

// What the files believe alive and no supervisor knows is an error.
func TestListAndStatus(t *testing.T) {
	w := newWorld(t)
	if err := List(t.Context(), w.Caller); err != nil || w.out.Len() > 0 {
		t.Errorf("of nothing: %q, %v", w.out.String(), err)
	}
	code := 3
	p := w.kept("coder", "default", terminal.Exited, func(m *terminal.Meta) { m.ExitCode = &code })
	w.kept("coder", "lost", terminal.Running, nil)
	broken := w.kept("coder", "broken", terminal.Exited, nil)
	if err := os.WriteFile(filepath.Join(w.Layout.TerminalResource(broken.Owner.UID, "coder", "broken"), "meta.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := List(t.Context(), w.Caller); err != nil {
		t.Fatal(err)
	}
	want := "terminal-coder-broken\tcoder\tbroken\terror\t\t\t\n" +
		"terminal-coder-default\tcoder\tdefault\texited\t\tdirect\t/w\n" +
		"terminal-coder-lost\tcoder\tlost\terror\t\tdirect\t/w\n"
	if w.out.String() != want {
		t.Errorf("%q", w.out.String())
	}
	w.out.Reset()
	w.JSON = true
	if err := Status(t.Context(), w.Caller, p); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(w.out.String(), `{"terminal":"terminal-coder-default","agent":"coder","session":"default","state":"exited","pid":0,"supervisor":"direct","unit":"","workspace":"/w","cwd":"/workspace","command":["/ctx/bin/tsh"],"size":"90x30","socket":"","emit":false,"created_at":0,"exit_code":3,"error":""}`) {
		t.Errorf("%s", w.out.String())
	}
	if err := Status(t.Context(), w.Caller, w.place("coder", "never")); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

// record writes event files: the text of each, the newest first.
func (w *world) record(p terminal.Place, files ...[]terminal.Event) {
	w.t.Helper()
	for n, events := range files {
		var text []byte
		for _, e := range events {
			var err error
			if text, err = e.Append(text); err != nil {
				w.t.Fatal(err)
			}
		}
		w.file(p, n, string(text))
	}
}

func (w *world) file(p terminal.Place, n int, text string) {
	w.t.Helper()
	at := filepath.Join(w.Layout.TerminalResource(p.Owner.UID, p.Agent, p.Session), terminal.EventFile(n))
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func said(seq uint64, after time.Duration, data string) terminal.Event {
	return terminal.Event{Seq: seq, Time: noon.Add(after), Type: terminal.EventOutput, Data: []byte(data)}
}

func sized(seq uint64, after time.Duration, cols, rows int) terminal.Event {
	return terminal.Event{Seq: seq, Time: noon.Add(after), Type: terminal.EventResize, Size: termwire.Size{Cols: cols, Rows: rows}}
}

func TestExport(t *testing.T) {
	w := newWorld(t)
	p := w.kept("coder", "default", terminal.Exited, nil)
	w.record(p,
		[]terminal.Event{said(5, time.Second, "\xac!\xff"), {Seq: 6, Time: noon.Add(2 * time.Second), Type: terminal.EventExit}},
		[]terminal.Event{sized(1, 0, 80, 24), said(2, 1500*time.Millisecond, "a\x1b[1mb\r\n"), sized(3, 2*time.Second, 100, 30), said(4, 2*time.Second, "\xe2\x82")},
	)
	for _, c := range []struct {
		tty, cast bool
		want      string
	}{
		{false, false, "a\x1b[1mb\r\n\xe2\x82\xac!\xff"},
		{true, false, `a\x1b[1mb\r` + "\n" + `€!\xff`},
		{false, true, `{"version":2,"width":80,"height":24,"timestamp":1796040000,"title":"coder/default","env":{"TERM":"xterm-256color"}}
[1.500,"o","a\u001b[1mb\r\n"]
[2.000,"r","100x30"]
[2.000,"o","€!�"]
`},
	} {
		w.out.Reset()
		w.OutTTY = c.tty
		if err := Export(w.Caller, p, c.cast); err != nil || w.out.String() != c.want {
			t.Errorf("%+v: %q, %v", c, w.out.String(), err)
		}
	}
}

// A damaged line is reported, what follows is still there, and so is the header
// of what has no beginning any more.
func TestExportOfDamage(t *testing.T) {
	w := newWorld(t)
	p := w.kept("coder", "default", terminal.Exited, nil)
	w.record(p, []terminal.Event{said(9, 0, "x\xc3")})
	w.file(p, 1, "{}\n")
	for _, cast := range []bool{false, true} {
		w.out.Reset()
		w.errs.Reset()
		want := "x\xc3"
		if cast {
			want = `{"version":2,"width":90,"height":30,"timestamp":1796040000,"title":"coder/default","env":{"TERM":"xterm-256color"}}` + "\n" +
				`[0.000,"o","x"]` + "\n" + `[0.000,"o","�"]` + "\n"
		}
		if err := Export(w.Caller, p, cast); !errdefs.Is(err, errdefs.IO) || w.out.String() != want || !strings.HasPrefix(w.errs.String(), "events.1.jsonl: line 1: ") {
			t.Errorf("%q, %q, %v", w.out.String(), w.errs.String(), err)
		}
	}
	w.out.Reset()
	if err := Export(w.Caller, w.kept("coder", "silent", terminal.Exited, nil), true); err != nil || !strings.HasPrefix(w.out.String(), `{"version":2,"width":90,"height":30,"title":`) {
		t.Errorf("%q, %v", w.out.String(), err)
	}
	if err := Export(w.Caller, w.place("coder", "never"), false); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

// Without a terminal nobody attaches, and nobody is there to watch.
func TestShowRefusals(t *testing.T) {
	w := newWorld(t)
	p := w.place("coder", "default")
	if err := Attach(t.Context(), w.Caller, p, ShowOptions{}); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(errdefs.HintOf(err), "ctx terminal watch coder/default") {
		t.Errorf("%v", err)
	}
	for _, key := range []string{"x", ""} {
		if err := Attach(t.Context(), w.Caller, p, ShowOptions{Escape: &key}); !errdefs.Is(err, errdefs.Invalid) || !strings.HasPrefix(err.Error(), "flag --escape: ") {
			t.Errorf("%q: %v", key, err)
		}
	}
	other := p
	other.Owner.UID++
	for name, show := range map[string]func(context.Context, *caller.Caller, terminal.Place, ShowOptions) error{"attach": Attach, "watch": Watch} {
		if err := show(t.Context(), w.Caller, other, ShowOptions{}); !errdefs.Is(err, errdefs.Denied) || !strings.Contains(err.Error(), "belongs to uid") {
			t.Errorf("%s another's: %v", name, err)
		}
	}
	err := Watch(t.Context(), w.Caller, p, ShowOptions{})
	if !errdefs.Is(err, errdefs.Unavailable) || errdefs.HintOf(err) != "start it: ctx agent start coder" ||
		!strings.Contains(err.Error(), w.Layout.TerminalLink(p.Owner.UID, "coder", "default")+" or "+w.Layout.TerminalSocket("coder", "default")) {
		t.Errorf("%v", err)
	}
}

// A reader that goes away is no failure of the terminal's.
func TestWatchIntoClosedPipe(t *testing.T) {
	w := newWorld(t)
	p := w.place("coder", "default")
	if err := os.MkdirAll(w.Layout.TerminalDir("coder", "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := serve(t, w.Layout.TerminalSocket("coder", "default"), &termwire.Hello{Protocol: 1, Mode: "watch", Size: termwire.DefaultSize})
	defer s()
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.Close()
	w.Out = out
	var exit runs.ExitError
	if err := Watch(t.Context(), w.Caller, p, ShowOptions{}); !errors.As(err, &exit) || exit != 141 {
		t.Errorf("%v", err)
	}
}
