package toolrun

import (
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/toolshell/settings"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/wire"
)

// builtin carries out a builtin of the tool shell. Nothing is started for it.
func (a *Admitted) builtin() Result {
	start := time.Now()
	sh := toolshell.Shell{
		Catalog: catalog{a.runner.Layout, a.agent},
		Store:   a.store,
		Config:  a.config,
		Topics:  toolshell.Topics(),
	}
	a.runner.loaded.Lock()
	out := sh.Run(a.words)
	a.runner.loaded.Unlock()

	res := Result{Status: "ok", ExitCode: &out.Exit, Duration: time.Since(start)}
	if out.Exit != 0 {
		res.Status = "error"
	}
	res.Content, res.Truncated = wire.Clip(out.Content(), libctx.MaxToolResultHard)
	return res
}

// config is the settings of the shell, which stand beside its file.
func (a *Admitted) config() (settings.Config, error) {
	text, err := a.tool.Control(settings.File)
	if err != nil {
		return settings.Config{}, err
	}
	c, err := settings.Parse(text)
	if err != nil {
		err = errdefs.New(errdefs.KindOf(err), "%s.d/%w", a.tool.Path, err)
	}
	return c, err
}

// catalog is the tools on an agent's path as admission shows them.
type catalog struct {
	layout paths.Layout
	agent  *view.Agent
}

// List implements toolshell.Catalog.
func (c catalog) List() ([]toolshell.Item, error) {
	names, err := c.agent.Tools(c.layout)
	if err != nil {
		return nil, err
	}
	var items []toolshell.Item
	for _, name := range names {
		item, code, err := c.look(name)
		if err != nil {
			return nil, err
		}
		if code != admit.NotFound { // removed since it was listed
			items = append(items, item)
		}
	}
	return items, nil
}

// Find implements toolshell.Catalog. What is refused is told in the sentence
// that a call of it would get.
func (c catalog) Find(name libctx.Tool) (toolshell.Item, error) {
	item, code, err := c.look(name)
	switch {
	case err != nil:
		return item, err
	case code == admit.NotFound:
		return item, errdefs.New(errdefs.NotFound, "%s: %s", name, code.Sentence()).WithHint("tsh tools lists what there is")
	case code != "":
		return item, errdefs.New(errdefs.Denied, "%s: %s", name, code.Sentence())
	}
	return item, nil
}

func (c catalog) look(name libctx.Tool) (toolshell.Item, admit.Code, error) {
	t, err := c.agent.Lookup(c.layout, name)
	if err != nil {
		return toolshell.Item{}, "", err
	}
	defer t.Close()
	code := admit.Standing(c.agent.Facts(), t.Tool).Code
	return toolshell.Item{
		Name: name, Path: t.Path, Description: t.Description, Schema: string(t.Schema), Refused: string(code),
	}, code, nil
}
