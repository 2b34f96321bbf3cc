package terminal

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/view"
	"github.com/fsnotify/fsnotify"
)

// follow keeps the tools that a running terminal sees those that its agent may
// run: after every change of the agent's controls or of a directory of tools
// they are looked up again. While the agent's files are refused there are none.
// It ends with ctx.
func (l *launcher) follow(ctx context.Context) {
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		l.Log.Warn("tools that are granted or revoked are not seen", "why", err.Error())
		return
	}
	defer watch.Close()
	for {
		// Watched first: what changes while it is looked at is looked at again.
		l.watch(watch)
		l.refresh()
		if !l.watch(watch) { // else a directory that has just come, and may have been filled before
			select {
			case <-ctx.Done():
				return
			case _, ok := <-watch.Events:
				if !ok {
					return
				}
			case _, ok := <-watch.Errors: // events were lost
				if !ok {
					return
				}
			}
		}
		for more := true; more; {
			select {
			case <-watch.Events:
			case <-watch.Errors:
			case <-ctx.Done():
				return
			default:
				more = false
			}
		}
	}
}

// refresh makes the tools what they have to be now.
func (l *launcher) refresh() {
	now, err := view.Load(l.layout, l.Tools.Agent)
	if err == nil && !now.Owner.IsSelf() {
		err = errdefs.New(errdefs.Denied, "agent %s: belongs to uid %d now", l.Tools.Agent, now.Owner.UID)
	}
	if err == nil {
		l.path = now.Path
		err = l.view.Follow(now)
	}
	if err == nil {
		return
	}
	l.Log.Warn("the terminal has no tools", "why", err.Error())
	if err := l.view.Clear(); err != nil {
		l.Log.Error("tools are left", "why", err.Error())
	}
}

// watch watches every directory that has a say in the tools, and no other. It
// reports whether one is watched that was not before.
func (l *launcher) watch(w *fsnotify.Watcher) (more bool) {
	wanted := []string{l.layout.Agents(), l.layout.Control(l.Tools.Agent)}
	for _, dir := range l.path {
		dir = l.layout.HostPath(dir)
		wanted = append(wanted, dir, filepath.Dir(dir))
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() && strings.HasSuffix(e.Name(), ".d") {
				wanted = append(wanted, filepath.Join(dir, e.Name()))
			}
		}
	}
	now := w.WatchList()
	for _, dir := range wanted {
		at := dir
		for err := w.Add(at); err != nil && at != l.layout.Root && paths.Below(at, l.layout.Root); err = w.Add(at) {
			at = filepath.Dir(at) // it is not there yet, or closed to us: then the one above may change that
			wanted = append(wanted, at)
		}
		more = more || !slices.Contains(now, at)
	}
	for _, dir := range now {
		if !slices.Contains(wanted, dir) {
			w.Remove(dir)
		}
	}
	return more
}
