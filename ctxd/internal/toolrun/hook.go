package toolrun

import (
	"os"
	"path/filepath"

	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/view"
)

// HookSpec is the sandbox of a hook of a call but for what runs in it; release gives
// the prepared view back. It is that of a tool without what the agent wrote for
// itself: no home, and it starts at /, with an environment in which the env control
// has no say, so that nothing that the agent left there changes what a hook does.
// Before a call a hook looks and changes nothing: all directories are read-only.
func (r *Runner) HookSpec(a *view.Agent, c Call, when view.When) (spec sandbox.Spec, release func(), err error) {
	spec, release, err = r.spec(a, c.Workspace, c.Cwd, nil)
	if err != nil {
		return spec, release, err
	}
	spec.Kind, spec.Home, spec.Control, spec.Cwd = sandbox.Hook, "", "", "/"
	if when == view.Before {
		spec.Workspace.Frozen = true
		for i := range spec.Mounts {
			spec.Mounts[i].ReadOnly = true
		}
	}
	spec.Env = a.HookEnviron("CTX_SESSION="+string(c.Session), "CTX_RUN_ID="+string(c.Run))
	return spec, release, nil
}

// hideHooks puts an empty directory in the place of the hooks of the agent where its
// control directory is the host's own. Of hooks whose directory is made, or exchanged,
// later a sandbox that is there sees the files, as it sees the controls.
func (r *Runner) hideHooks(live *view.Live) mount.Table {
	st, err := os.Lstat(filepath.Join(r.Layout.Control(r.Agent), view.HooksDir))
	if err != nil || !st.IsDir() {
		return nil
	}
	return mount.Table{{
		Source:   filepath.Join(live.Dir, "model"), // no view has anything there
		Target:   filepath.Join(paths.Layout{Root: paths.InRoot}.Control(r.Agent), view.HooksDir),
		ReadOnly: true,
	}}
}
