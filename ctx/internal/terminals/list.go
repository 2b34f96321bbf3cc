package terminals

import (
	"context"
	"strconv"
	"strings"
	"time"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/instances"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
)

// Terminal is one terminal of `ctx terminal list` and `status`.
type Terminal struct {
	Terminal   string         `json:"terminal"`
	Agent      libctx.Agent   `json:"agent"`
	Session    libctx.Session `json:"session"`
	State      terminal.State `json:"state"`
	PID        int            `json:"pid"` // of the launcher; 0 if it does not live
	Supervisor string         `json:"supervisor"`
	Unit       string         `json:"unit"`
	Workspace  string         `json:"workspace"`
	Cwd        string         `json:"cwd"`
	Command    []string       `json:"command"`
	Size       string         `json:"size"`
	Socket     string         `json:"socket"`
	Emit       bool           `json:"emit"`
	CreatedAt  int64          `json:"created_at"` // Unix seconds; 0 if unknown
	ExitCode   *int           `json:"exit_code"`
	Error      string         `json:"error"`
}

// lost is what is wrong with a terminal that its files believe alive.
const lost = "its launcher is gone"

// describe joins what is kept of a terminal and what lives of it. A terminal that
// lives runs, whatever the files say.
func describe(p terminal.Place, m terminal.Meta, damage error, alive *instances.Terminal) Terminal {
	t := Terminal{
		Terminal: p.ID(), Agent: p.Agent, Session: p.Session, State: m.State, Supervisor: m.Supervisor,
		Workspace: m.Workspace, Cwd: m.Cwd, Command: m.Command, Size: m.Size, Socket: m.Socket, Emit: m.Emit,
		CreatedAt: m.CreatedAt, ExitCode: m.ExitCode, Error: m.Error,
	}
	if t.Command == nil {
		t.Command = []string{}
	}
	switch {
	case damage != nil:
		t.State, t.Error = terminal.Error, damage.Error()
	case alive == nil && (t.State == terminal.Running || t.State == terminal.Created):
		t.State, t.Error = terminal.Error, lost
	}
	if alive != nil {
		t.PID, t.Supervisor, t.Unit = alive.PID, alive.Supervisor, alive.Unit
		if t.State != terminal.Created {
			t.State = terminal.Running
		}
	}
	return t
}

// List lists the terminals of the tree. It starts nothing.
func List(ctx context.Context, from *caller.Caller) error {
	kept, err := list(from)
	if err != nil {
		return err
	}
	living, err := live(ctx, from)
	if err != nil {
		return err
	}
	var rows []output.Row
	for _, l := range kept {
		var alive *instances.Terminal
		if i, ok := living[l.String()]; ok {
			alive = &i
		}
		t := describe(l.Place, l.Meta, l.Err, alive)
		rows = append(rows, output.Row{
			Cells:  []string{t.Terminal, string(t.Agent), string(t.Session), string(t.State), pid(t.PID), t.Supervisor, t.Workspace},
			Object: t,
		})
	}
	return from.Table([]string{"TERMINAL", "AGENT", "SESSION", "STATE", "PID", "SUPERVISOR", "WORKSPACE"}, rows)
}

func pid(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Status prints what a terminal is. It starts nothing.
func Status(ctx context.Context, from *caller.Caller, p terminal.Place) error {
	m, damage := p.Load()
	if errdefs.Is(damage, errdefs.NotFound) {
		return damage
	}
	var alive *instances.Terminal
	switch i, err := instances.Find(ctx, from, p.Owner.UID, p.Agent, p.Session); {
	case err == nil:
		alive = &i
	case !errdefs.Is(err, errdefs.NotFound):
		return err
	}
	t := describe(p, m, damage, alive)
	started, exit := "", ""
	if t.CreatedAt > 0 {
		started = time.Unix(t.CreatedAt, 0).Format(time.RFC3339)
	}
	if t.ExitCode != nil {
		exit = strconv.Itoa(*t.ExitCode)
	}
	return from.Record(t,
		"terminal", t.Terminal, "agent", string(t.Agent), "session", string(t.Session), "state", string(t.State), "error", t.Error,
		"exit code", exit, "pid", pid(t.PID), "supervisor", t.Supervisor, "unit", t.Unit, "command", strings.Join(t.Command, " "),
		"workspace", t.Workspace, "cwd", t.Cwd, "size", t.Size, "socket", t.Socket, "tool calls", shown(t.Emit), "started", started)
}

func shown(on bool) string {
	if on {
		return "shown"
	}
	return "not shown"
}
