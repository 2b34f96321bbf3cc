package receipt

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/wire"
)

// A proven receipt is in the resource and, beside what else is there, in the
// control directory; its terminal is listed as long as it lives.
func TestAccept(t *testing.T) {
	w := newWorld(t)
	w.ok(os.WriteFile(filepath.Join(w.layout.Control("coder"), terminal.MetaFile), []byte(`{"mine":[1,2]}`+"\n"), 0o644))
	if got := w.keeper.Live(t.Context(), "default"); got != nil {
		t.Errorf("live before: %v", got)
	}
	r := w.start("default")
	if got := w.keeper.Live(t.Context(), "default"); got != nil {
		t.Errorf("live before its receipt: %v", got)
	}
	text, err := r.Text()
	w.ok(err)
	start, err := w.keeper.Accept(t.Context(), "default", text)
	w.ok(err)
	if start.Type != "agent.start" || start.PID != r.Terminal.PID || start.Terminal != "terminal-coder-default" || start.Unit != r.Terminal.Unit {
		t.Errorf("%+v", start)
	}
	stored, _, err := w.keeper.stored("default")
	w.ok(err)
	if again, err := stored.Text(); err != nil || string(again) != string(text) {
		t.Errorf("stored %s, %v", again, err)
	}
	meta, err := os.ReadFile(filepath.Join(w.layout.Control("coder"), terminal.MetaFile))
	if err != nil || !strings.Contains(string(meta), `"mine"`) || !strings.Contains(string(meta), `"runtime_receipt"`) {
		t.Errorf("%s, %v", meta, err)
	}
	if got := w.keeper.Live(t.Context(), "default"); len(got) != 1 || got[0] != "terminal-coder-default" {
		t.Errorf("live: %v", got)
	}
	w.ok(w.direct.Stop(t.Context(), instance(r.Terminal)))
	if got := w.keeper.Live(t.Context(), "default"); got != nil {
		t.Errorf("live after its end: %v", got)
	}
	if err := w.accept("default", r); !errdefs.Is(err, errdefs.NotFound) {
		t.Errorf("a receipt of what is gone: %v", err)
	}
}

// What a receipt says wrongly refuses it, and nothing is written.
func TestAcceptRefuses(t *testing.T) {
	w := newWorld(t)
	good, other := w.start("default"), w.start("other")
	me, err := procid.Of(os.Getpid())
	w.ok(err)
	before := w.written("default")
	for name, change := range map[string]func(*terminal.Receipt){
		"control of another inode": func(r *terminal.Receipt) { r.Control.Ino++ },
		"control of another disk":  func(r *terminal.Receipt) { r.Control.Dev++ },
		"another session":          func(r *terminal.Receipt) { r.Terminal.Session = "other" },
		"another unit":             func(r *terminal.Receipt) { r.Terminal.Unit = other.Terminal.Unit },
		"a renamed unit":           func(r *terminal.Receipt) { r.Terminal.Unit = "x.service" },
		"another supervisor":       func(r *terminal.Receipt) { r.Terminal.Supervisor = supervise.Systemd },
		"no supervisor":            func(r *terminal.Receipt) { r.Terminal.Supervisor = "upstart" },
		"another invocation":       func(r *terminal.Receipt) { r.Terminal.Invocation = other.Terminal.Invocation },
		"another process": func(r *terminal.Receipt) {
			r.Terminal.PID, r.Terminal.Start, r.Terminal.Invocation = other.Terminal.PID, other.Terminal.Start, other.Terminal.Invocation
		},
		"us":                 func(r *terminal.Receipt) { r.Terminal.PID, r.Terminal.Start = me.PID, me.Start },
		"another start":      func(r *terminal.Receipt) { r.Terminal.Start++ },
		"another boot":       func(r *terminal.Receipt) { r.Terminal.Boot = "x" },
		"another socket":     func(r *terminal.Receipt) { r.Terminal.Socket = other.Terminal.Socket },
		"a socket elsewhere": func(r *terminal.Receipt) { r.Terminal.Socket.Path = "/run/x.sock" },
		"an older socket":    func(r *terminal.Receipt) { r.Terminal.Socket.Ino++ },
		"another user":       func(r *terminal.Receipt) { r.Terminal.Identity.UID++ },
		"another group":      func(r *terminal.Receipt) { r.Terminal.Identity.GID++ },
		"more groups": func(r *terminal.Receipt) {
			r.Terminal.Identity.Groups = append([]uint32{4242424}, r.Terminal.Identity.Groups...)
		},
	} {
		r := good
		change(&r)
		if err := w.accept("default", r); err == nil || errdefs.KindOf(err) == errdefs.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := good.Text()
	w.ok(err)
	for name, text := range map[string]string{
		"a member more": strings.Replace(string(text), `{"version"`, `{"more":1,"version"`, 1),
		"a member less": strings.Replace(string(text), `"boot"`, `"boots"`, 1),
		"a version":     strings.Replace(string(text), `"version":1`, `"version":2`, 1),
		"no object":     `[]`,
	} {
		if _, err := w.keeper.Accept(t.Context(), "default", []byte(text)); !errdefs.Is(err, errdefs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.accept("other", good); !errdefs.Is(err, errdefs.Invalid) {
		t.Errorf("for another session: %v", err)
	}
	if after := w.written("default"); after != before {
		t.Errorf("written:\n%s", after)
	}
	w.ok(w.accept("default", good))
}

// The socket is the one that the launcher made, also if another process listens
// under its name and its number.
func TestAcceptRefusesAnotherListener(t *testing.T) {
	w := newWorld(t)
	first := w.start("default")
	second := w.start("default") // it took the place of the socket
	r := first
	r.Terminal.Socket = second.Terminal.Socket
	if err := w.accept("default", r); !errdefs.Is(err, errdefs.Invalid) || !strings.Contains(err.Error(), "another process listens") {
		t.Error(err)
	}
	w.ok(w.accept("default", second))
}

// Stop ends what receipts prove, once, and touches nothing else.
func TestStop(t *testing.T) {
	w := newWorld(t)
	a, b, c, d := w.start("a"), w.start("b"), w.start("c"), w.start("d")
	e := w.start("never-receipted")
	for s, r := range map[libctx.Session]terminal.Receipt{"a": a, "b": b, "c": c, "d": d} {
		w.ok(w.accept(s, r))
	}
	w.ok(w.direct.Stop(t.Context(), instance(b.Terminal))) // it is gone and nobody said so
	w.ok(w.direct.Stop(t.Context(), instance(d.Terminal)))
	w.ok(w.keeper.place("d").SetState(terminal.Exited, nil)) // it ended as it should
	reused := c
	reused.Terminal.PID, reused.Terminal.Start = e.Terminal.PID, e.Terminal.Start+1
	w.ok(w.keeper.place("c").SetReceipt(reused))
	foreign := e // true of every part of another session's terminal
	foreign.Terminal.Session, foreign.Terminal.Socket = "f", w.start("f").Terminal.Socket
	w.ok(w.keeper.place("f").SetReceipt(foreign))

	another := w.start("g") // of an agent that had this name before
	another.Control.Ino++
	w.ok(w.keeper.place("g").SetReceipt(another))

	var noted []libctx.Session
	note := func(s libctx.Session, f wire.Frame) error {
		stop := f.(*wire.AgentStop)
		if stop.Type != "agent.stop" || stop.PID != a.Terminal.PID || stop.Terminal != "terminal-coder-a" {
			t.Errorf("%+v", stop)
		}
		noted = append(noted, s)
		return nil
	}
	stop := func(s libctx.Session) string {
		t.Helper()
		plan, err := w.keeper.Plan(t.Context(), s)
		w.ok(err)
		var out []string
		for _, r := range Stop(t.Context(), plan, note) {
			out = append(out, string(r.Session)+" "+r.Outcome)
			if (r.Message == "") != (r.Outcome == Stopped) {
				t.Errorf("%+v", r)
			}
		}
		return strings.Join(out, ", ")
	}
	if got := stop("none"); got != "" {
		t.Errorf("a session without a terminal: %s", got)
	}
	if got := stop("never-receipted"); got != "" {
		t.Errorf("a terminal without a receipt: %s", got)
	}
	if got := stop(""); got != "a stopped, b gone, c stale, f stale, g stale" {
		t.Errorf("all: %s", got)
	}
	if got := stop("a"); got != "a gone" {
		t.Errorf("again: %s", got)
	}
	if len(noted) != 1 || noted[0] != "a" {
		t.Errorf("noted %v", noted)
	}
	for _, r := range []terminal.Receipt{c, e} {
		if err := supervise.Prove(context.Background(), instance(r.Terminal)); err != nil {
			t.Errorf("%s: %v", r.Terminal.Session, err)
		}
	}
	if plan, err := (*Keeper)(nil).Plan(t.Context(), ""); plan != nil || err != nil {
		t.Error(plan, err)
	}
}
