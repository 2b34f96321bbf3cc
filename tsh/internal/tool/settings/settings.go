// Package settings is the tool tsh.config: it shows the settings of the tool
// shell, and changes them for a person who may write their file. An agent is
// only shown them: nothing that steers an agent's tools can be changed from
// inside its sandboxes.
package settings

import (
	"context"
	"fmt"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/control"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/tsh/internal/config"
	"cortexfs.org/tsh/internal/ctxpath"
	"cortexfs.org/tsh/internal/tool"
	"github.com/go-json-experiment/json/jsontext"
)

// Tsh is tsh.config for a process with that environment.
func Tsh(conf config.Shell) tool.Tool {
	return tool.Tool{
		Name: "tsh.config",
		Form: tool.Form{Numbers: []string{"max_loaded_tools", "cache_capacity", "window_percent"}},
		Run: func(_ context.Context, args jsontext.Value, out *tool.Output) error {
			return run(conf, args, out)
		},
	}
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
	place, err := ctxpath.Find(conf, "")
	if err != nil {
		return err
	}
	now, dir, err := place.Settings()
	if dir == "" && err == nil {
		err = errdefs.New(errdefs.NotFound, "there is no tool tsh on CTX_PATH whose settings these would be")
	}
	if err != nil {
		return err
	}
	var changes []change
	for _, c := range []change{{"max_loaded_tools", a.MaxLoadedTools}, {"cache_capacity", a.CacheCapacity}, {"window_percent", a.WindowPercent}} {
		if c.value != nil {
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 {
		if now, err = write(conf, dir, changes); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s", now.Text())
	out.Notef("%s/%s", dir, control.TshConfigFile)
	return nil
}

// change is a key that gets another value.
type change struct {
	key   string
	value *int
}

// write changes the file, with the rights of the process.
func write(conf config.Shell, dir string, changes []change) (control.TshConfig, error) {
	if conf.Agent != "" {
		return control.TshConfig{}, errdefs.New(errdefs.Denied, "settings can not be changed from inside an agent").
			WithHint("a person edits %s/%s, or runs ctxtool tsh.config", dir, control.TshConfigFile)
	}
	d, err := atomicfile.OpenDir(dir)
	if err != nil {
		return control.TshConfig{}, errdefs.New(errdefs.KindOf(err), "settings: %w", err)
	}
	defer d.Close()
	text, err := ctxpath.Read(dir, control.TshConfigFile, libctx.MaxControlFile)
	for i := 0; i < len(changes) && err == nil; i++ {
		text, err = control.ChangeTshConfig(text, changes[i].key, *changes[i].value)
	}
	if err == nil && len(text) > libctx.MaxControlFile {
		err = errdefs.New(errdefs.TooBig, "%s: is longer than %d bytes", control.TshConfigFile, libctx.MaxControlFile)
	}
	if err == nil {
		err = d.Replace(control.TshConfigFile, text, 0o644)
	}
	if err != nil {
		return control.TshConfig{}, errdefs.New(errdefs.KindOf(err), "settings: %w", err)
	}
	return control.ParseTshConfig(text)
}
