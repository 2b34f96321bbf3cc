package toolrun

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/session"
	"cortexfs.org/libctx/toolshell"
	"cortexfs.org/libctx/view"
)

// loadedDir is where a session keeps its loaded tools, relative to its
// directory.
const loadedDir = "context"

// store is what keeps the loaded tools of a session: memory, if it has no
// directory, else a file.
func (r *Runner) store(a *view.Agent, s libctx.Session, memory *toolshell.Memory) toolshell.Store {
	if memory != nil {
		return memory
	}
	return sessionStore{r, a, s}
}

// LoadedTools is the text about the tools that are loaded in a session, at most
// max bytes, as a step of an executable agent and the prompt of a model agent get
// it. Memory is the set of a session that has no directory.
func (r *Runner) LoadedTools(a *view.Agent, s libctx.Session, memory *toolshell.Memory, max int) (string, error) {
	set, err := r.store(a, s, memory).Load()
	return set.Context(max), err
}

// use notes that a tool was called, if it is loaded. The set is a convenience:
// one that can not be kept fails no call.
func (r *Runner) use(store toolshell.Store, name libctx.Tool) {
	r.loaded.Lock()
	defer r.loaded.Unlock()
	set, err := store.Load()
	if err != nil {
		return
	}
	if after, changed := set.Use(name); changed {
		_ = store.Save(after)
	}
}

// sessionStore is the file of a private session, read and written with the
// rights of the agent's owner. It is a projection: without it, and if it says
// nothing that can be understood, no tool is loaded, and no right is lost.
type sessionStore struct {
	*Runner
	agent   *view.Agent
	session libctx.Session
}

// Load implements toolshell.Store.
func (f sessionStore) Load() (set toolshell.Set, err error) {
	err = f.in(func(d *atomicfile.Dir) error {
		text, err := d.ReadFile(loadedDir+"/"+toolshell.SetFile, libctx.MaxLoadedSet)
		switch {
		case errdefs.Is(err, errdefs.NotFound), errdefs.Is(err, errdefs.TooBig):
			return nil
		case err != nil:
			return err
		}
		set, _ = toolshell.Decode(text)
		return nil
	})
	return set, err
}

// Save implements toolshell.Store.
func (f sessionStore) Save(set toolshell.Set) error {
	text, err := set.Encode()
	if err != nil {
		return err
	}
	return f.in(func(d *atomicfile.Dir) error {
		sub, err := d.MkdirAll(loadedDir, 0o700)
		if err != nil {
			return err
		}
		defer sub.Close()
		return sub.ReplaceLazy(toolshell.SetFile, text, 0o600)
	})
}

// in runs fn in the session's directory.
func (f sessionStore) in(fn func(*atomicfile.Dir) error) error {
	place := session.Place{Layout: f.Layout, Agent: f.Agent, Owner: f.agent.Owner}
	if err := place.Within(f.session, fn); err != nil {
		return errdefs.New(errdefs.KindOf(err), "loaded tools: %w", err)
	}
	return nil
}
