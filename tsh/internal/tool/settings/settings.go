// Package settings is the tool tsh.config: it shows the settings of the tree's
// tool shell, and changes them for a person who may write their file. An agent
// is only shown them: nothing that steers an agent's tools can be changed from
// inside its sandboxes.
package settings

import (
	"context"
	"fmt"
	"path/filepath"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell/settings"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
)

// Tsh is tsh.config for a process with that environment.
func Tsh(conf config.Shell) tool.Tool {
	return tool.Tool{
		Name: "tsh.config",
		Run: func(_ context.Context, args jsontext.Value, out *tool.Output) error {
			return run(conf, args, out)
		},
	}
}

// change is a key that gets another value.
type change struct {
	key   string
	value *int
}

func run(conf config.Shell, args jsontext.Value, out *tool.Output) error {
	var a struct {
		MaxLoadedTools *int `json:"max_loaded_tools"`
		CacheCapacity  *int `json:"cache_capacity"`
		WindowPercent  *int `json:"window_percent"`
	}
	if err := tool.Decode(args, &a); err != nil {
		return err
	}
	layout, err := paths.Find(conf.Paths)
	if err != nil {
		return err
	}
	dir, err := atomicfile.OpenDir(filepath.Join(layout.Tools(), "tsh.d"))
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "settings of tsh: %w", err).WithHint("ctx init makes the tree, CTX_ROOT says where it is")
	}
	defer dir.Close()
	text, err := dir.ReadFile(settings.File, libctx.MaxControlFile)
	if errdefs.Is(err, errdefs.NotFound) {
		text, err = nil, nil
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "settings of tsh: %w", err)
	}
	changed := false
	for _, c := range []change{{"max_loaded_tools", a.MaxLoadedTools}, {"cache_capacity", a.CacheCapacity}, {"window_percent", a.WindowPercent}} {
		switch {
		case c.value == nil || err != nil:
		case conf.Agent != "":
			return errdefs.New(errdefs.Denied, "settings can not be changed from inside an agent").
				WithHint("a person edits tool/tsh.d/%s of the tree, or runs ctxtool tsh.config", settings.File)
		default:
			text, err = settings.Change(text, c.key, *c.value)
			changed = true
		}
	}
	var now settings.Config
	if err == nil {
		now, err = settings.Parse(text)
	}
	if err == nil && changed {
		err = dir.Replace(settings.File, text, 0o644)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s/%w", dir.Path(), err)
	}
	fmt.Fprintf(out, "%s", now.Text())
	out.Notef("%s/%s", dir.Path(), settings.File)
	return nil
}
