package terminals

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/instances"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/wire"
)

// left lists what a start left: processes, and files of terminals.
func (w *world) left() []string {
	w.t.Helper()
	var found []string
	living, err := instances.Live(w.t.Context(), w.Caller, uint32(os.Geteuid()))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, i := range living {
		found = append(found, i.Unit)
	}
	for _, pattern := range []string{
		w.Layout.Runtime + "/start-*", w.Layout.Runtime + "/terminal:*", w.Layout.Sessions(uint32(os.Geteuid()), "coder") + "/*/terminal/*",
		w.Layout.Locks + "/terminal:*", w.Layout.Terminals + "/*",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			w.t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

// A start that fails, in whichever way, says why and leaves nothing behind.
func TestFailedStarts(t *testing.T) {
	for play, c := range map[string]struct {
		kind errdefs.Kind
		say  string
		hint string
	}{
		"dies":     {errdefs.Unavailable, "terminal coder/default: its launcher ended at once: it broke", ""},
		"refuses":  {errdefs.Invalid, "workspace: is a link", "name another"},
		"killed":   {errdefs.Unavailable, "terminal coder/default: its launcher ended at once", ""},
		"nonsense": {errdefs.Protocol, "report of the launcher: ", ""},
		"wrong":    {errdefs.Protocol, "process 1 reports for process ", ""},
	} {
		t.Run(play, func(t *testing.T) {
			w := newWorld(t)
			w.plays(play)
			err := Start(t.Context(), w.Caller, "coder", StartOptions{Supervisor: supervise.Direct})
			if errdefs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.say) || errdefs.HintOf(err) != c.hint {
				t.Errorf("%v (%s, hint %q)", err, errdefs.KindOf(err), errdefs.HintOf(err))
			}
			if left := w.left(); len(left) > 0 || w.out.Len() > 0 {
				t.Errorf("left %v, printed %q", left, w.out.String())
			}
		})
	}
}

// Ctrl+C gives a start up.
func TestInterruptedStart(t *testing.T) {
	w := newWorld(t)
	w.plays("hangs")
	w.interrupts <- os.Interrupt
	if err := Start(t.Context(), w.Caller, "coder", StartOptions{Supervisor: supervise.Direct}); !errors.Is(err, caller.ErrInterrupt) {
		t.Error(err)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// What can be wrong before anything is started is said before.
func TestRefusedStarts(t *testing.T) {
	w := newWorld(t)
	w.plays("dies")
	for name, o := range map[string]StartOptions{
		"flag --mount: ":   {Mounts: []string{"/etc:/usr:ro"}},
		"workspace ":       {Workspace: "nowhere"},
		"supervisor \"x\"": {Supervisor: "x"},
		"session name":     {Session: "../x"},
	} {
		if o.Supervisor == "" {
			o.Supervisor = supervise.Direct
		}
		if err := Start(t.Context(), w.Caller, "coder", o); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Start(t.Context(), w.Caller, "nobody", StartOptions{Supervisor: supervise.Direct}); !errdefs.Is(err, errdefs.NotFound) {
		t.Error(err)
	}
}

func TestStart(t *testing.T) {
	w := newWorld(t)
	w.plays("runs")
	var got *wire.Receipt
	w.agent(func(r wire.Request) wire.Frame {
		got, _ = r.(*wire.Receipt)
		return &wire.Accepted{Head: wire.Head{Type: "accepted"}, Op: "receipt"}
	})
	if err := Start(t.Context(), w.Caller, "coder", StartOptions{Supervisor: supervise.Direct, Session: "review"}); err != nil {
		t.Fatal(err)
	}
	i, err := instances.Find(t.Context(), w.Caller, uint32(os.Geteuid()), "coder", "review")
	if err != nil {
		t.Fatal(err)
	}
	by, err := supervise.New(t.Context(), supervise.Direct, w.Layout, uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	defer by.Stop(t.Context(), i.Instance)
	if got == nil || got.Session != "review" {
		t.Fatalf("receipt %+v", got)
	}
	r, err := terminal.ParseReceipt(got.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	l := r.Terminal
	if l.PID != i.PID || l.Start != i.Start || l.Boot != i.Boot || l.Unit != i.Unit || l.Session != "review" || l.Identity.UID != uint32(os.Geteuid()) ||
		l.Socket.Path != w.Layout.TerminalSocket("coder", "review") || l.Socket.Ino == 0 || r.Control.Ino == 0 {
		t.Errorf("%+v of %+v", r, i)
	}
	for _, want := range []string{"terminal\tterminal-coder-review\n", "supervisor\tdirect\n", "pid\t" + pid(i.PID) + "\n", "workspace\t" + w.Config.Cwd + "\n"} {
		if !strings.Contains(w.out.String(), want) {
			t.Errorf("printed %q, without %q", w.out.String(), want)
		}
	}
	if !strings.Contains(w.errs.String(), "ctx agent attach --session review coder\n") {
		t.Errorf("noted %q", w.errs.String())
	}
	// A second one is told of the first.
	err = Start(t.Context(), w.Caller, "coder", StartOptions{Supervisor: supervise.Direct, Session: "review"})
	if !errdefs.Is(err, errdefs.Exists) || errdefs.HintOf(err) != "join it: ctx agent attach --session review coder" {
		t.Errorf("%v", err)
	}
	w.out.Reset()
	if err := List(t.Context(), w.Caller); err != nil || !strings.HasPrefix(w.out.String(), "terminal-coder-review\tcoder\treview\trunning\t"+pid(i.PID)+"\tdirect\t") {
		t.Errorf("%q, %v", w.out.String(), err)
	}
}

// An agent that does not take the receipt has no terminal.
func TestRefusedReceipt(t *testing.T) {
	for name, known := range map[string]bool{"new": false, "known": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if known {
				w.kept("coder", "default", terminal.Exited, nil)
			}
			w.plays("runs")
			w.agent(func(wire.Request) wire.Frame {
				return &wire.Error{Head: wire.Head{Type: "error"}, Code: errdefs.Invalid, Message: "receipt refused: no"}
			})
			if err := Start(t.Context(), w.Caller, "coder", StartOptions{Supervisor: supervise.Direct}); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "receipt refused") {
				t.Error(err)
			}
			left := w.left()
			if known && (len(left) != 1 || filepath.Base(left[0]) != "terminal-coder-default") || !known && len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}
