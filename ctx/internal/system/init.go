// Package system is what ctx says and does about the tree as a whole: make it,
// describe it, and say what this program is.
package system

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"cortexfs.org/libctx/inert"

	"cortexfs.org/ctx/internal/activator"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/output"
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/tree"
)

// programs are the programs of the suite that a tree's bin leads to.
var programs = []string{"ctx", "ctxd", "ctxmodel", "ctxterm", "tsh", "ctxtool"}

// Init makes the tree, or repairs the one that is there, and prints what it
// made. The tree of the machine, where the units of the suite are installed, is
// made where it is kept and then mounted, and its sockets listen.
func Init(ctx context.Context, from *caller.Caller, system bool) error {
	if system && os.Geteuid() != 0 {
		return errdefs.New(errdefs.Denied, "only root can make a system tree").
			WithHint("sudo ctx init --system, or without --system a tree of your own")
	}
	bins := map[string]string{}
	for _, name := range programs {
		path := filepath.Join(filepath.Dir(from.Config.Exe), name)
		if st, err := os.Stat(path); from.Config.Exe != "" && err == nil && st.Mode().IsRegular() {
			bins[name] = path
		}
	}
	layout := from.Layout
	machine := system && layout.Root == paths.SystemRoot && mounted()
	if machine {
		if err := keep(); err != nil {
			return err
		}
		layout = paths.New(from.Config.Paths, paths.SystemTree)
	}
	made, err := tree.Init(layout, bins)
	if err != nil {
		return err
	}
	if machine {
		if err := startUnits(ctx, from); err != nil {
			return err
		}
	}
	var rows []output.Row
	for _, rel := range made {
		path := filepath.Join(from.Layout.Root, rel)
		if strings.HasSuffix(rel, "/") {
			path += "/"
		}
		rows = append(rows, output.Row{Cells: []string{"made", path}, Object: struct {
			Made string `json:"made"`
		}{path}})
	}
	if err := from.Table(nil, rows); err != nil {
		return err
	}
	if len(made) == 0 {
		from.Note("tree " + from.Layout.Root + ": nothing to do")
	}
	from.Note("try: " + next(from, "agent new hello --model debug/tools --tool fs.list"))
	return nil
}

// next is a command to try, with --root if the tree is not found without.
func next(from *caller.Caller, command string) string {
	env := from.Config.Paths
	env.Flag = ""
	if l, err := paths.Find(env); err == nil && l.Root == from.Layout.Root {
		return "ctx " + command
	}
	return "ctx --root " + from.Layout.Root + " " + command
}

// Overview is what `ctx status --json` prints.
type Overview struct {
	Root      string `json:"root"`
	Mode      string `json:"mode"` // "user" or "system"
	Runtime   string `json:"runtime"`
	Config    string `json:"config"`
	Agents    int    `json:"agents"`
	Activator string `json:"activator"` // "running" or "stopped"
	Version   string `json:"version"`
}

// Status describes the tree.
func Status(from *caller.Caller) error {
	l := from.Layout
	if !paths.IsTree(l.Root) {
		return errdefs.New(errdefs.NotFound, "no tree at %s", l.Root).WithHint("make one: ctx init")
	}
	agents, err := tree.ListAgents(l)
	if err != nil {
		return err
	}
	o := Overview{
		Root: l.Root, Mode: mode(l), Runtime: l.Runtime, Config: l.Config,
		Agents: len(agents), Activator: "stopped", Version: libctx.Version,
	}
	if activator.Running(l) {
		o.Activator = "running"
	}
	return from.Record(o, "root", o.Root, "mode", o.Mode, "runtime", o.Runtime, "config", o.Config,
		"agents", itoa(o.Agents), "activator", o.Activator, "version", o.Version)
}

func mode(l paths.Layout) string {
	if l.System {
		return "system"
	}
	return "user"
}

// Env prints the variables that lead every program of the suite to this tree,
// one KEY=VALUE a line.
func Env(from *caller.Caller) error {
	l, uid := from.Layout, uint32(os.Geteuid())
	pairs := [][2]string{
		{"CTX_ROOT", l.Root},
		{"CTX_HOME", l.Home(uid)},
		{"CTX_PATH", l.Tools() + ":" + filepath.Join(l.Home(uid), "tool")},
	}
	if from.JSON {
		object := map[string]string{}
		for _, p := range pairs {
			object[p[0]] = p[1]
		}
		return from.Object(object)
	}
	for _, p := range pairs {
		if _, err := io.WriteString(from, p[0]+"="+inert.Line(p[1])+"\n"); err != nil {
			return err
		}
	}
	return nil
}
