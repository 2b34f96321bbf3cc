package toolrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/mount"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/sandbox"
	"cortexfs.org/libctx/view"
	"cortexfs.org/libctx/workspace"
)

// ControlVariable tells the programs of a run where its capability socket is. It is
// no secret and proves nothing.
const ControlVariable = "CTX_CONTROL_SOCKET=" + sandbox.InControl

// AgentSpec is the sandbox of one step of the agent's own executable, with the
// run's capability socket; release gives the prepared view back.
func (r *Runner) AgentSpec(a *view.Agent, workspace, cwd, control string) (spec sandbox.Spec, release func(), err error) {
	spec, release, err = r.spec(a, workspace, cwd, nil)
	spec.Kind, spec.Control = sandbox.Agent, control
	spec.Argv = []string{filepath.Join(paths.InRoot, "agent", string(r.Agent))}
	return spec, release, err
}

// Terminal is what the person who starts a terminal asks of its sandbox.
type Terminal struct {
	Workspace string      // host directory
	Frozen    bool        // all of it is shown read-only
	Mounts    mount.Table // besides those of the agent's mount control
	Cwd       string      // inside path; "" is that of the agent's cwd control
}

// TerminalSpec is the sandbox of a terminal of the agent but for what runs in it:
// the kind, and everything that is shown. Since it stays for long, the agent's
// control directory is the host's own, so that what is changed in it counts from
// the next command on, and its tools are those of a live view, which the caller
// keeps true and releases.
func (r *Runner) TerminalSpec(a *view.Agent, t Terminal) (spec sandbox.Spec, live *view.Live, err error) {
	all := *a
	all.Mounts = slices.Concat(a.Mounts, t.Mounts)
	if n := len(all.Mounts); n > libctx.MaxMounts {
		return spec, nil, errdefs.New(errdefs.Invalid, "%d mounts are too many: a sandbox has at most %d", n, libctx.MaxMounts)
	}
	for i, m := range all.Mounts {
		if slices.ContainsFunc(all.Mounts[:i], func(other mount.Line) bool { return other.Target == m.Target }) {
			return spec, nil, errdefs.New(errdefs.Invalid, "mount %s: is the target of another mount", m.Target)
		}
	}
	if t.Cwd == "" {
		t.Cwd = a.Cwd
	}
	spec, release, err := r.spec(&all, t.Workspace, t.Cwd, nil)
	if err != nil {
		return spec, nil, err
	}
	release()
	if err := r.CheckCwd(&all, spec.Workspace, t.Cwd); err != nil {
		return spec, nil, err
	}
	if live, err = a.PrepareLive(r.Layout, a.Executable); err != nil {
		return spec, nil, err
	}
	spec.View = live.Dir
	spec.Kind, spec.Workspace.Frozen = sandbox.Terminal, t.Frozen
	spec.Mounts = append(spec.Mounts, mount.Line{
		Source: r.Layout.Control(r.Agent), Target: paths.Layout{Root: paths.InRoot}.Control(r.Agent), ReadOnly: true,
	})
	spec.Mounts = append(spec.Mounts, r.hideHooks(live)...)
	return spec, live, nil
}

// Foresee has a sandbox prepared for the first call of a run that begins. What is
// wrong with it that call says, and every call looks at everything itself.
func (r *Runner) Foresee(a *view.Agent, workspace, control string) {
	spec, release, err := r.spec(a, workspace, "", nil)
	if err != nil {
		return
	}
	defer release() // the view's identity is compared, should it go meanwhile
	spec.Control = control
	spec.Argv = []string{paths.InRoot} // none yet
	r.Launcher.Prepare(spec)
}

// spec is what every sandbox of the agent has in common. The view shows the
// checked tool, if there is one, as it was when it was checked.
func (r *Runner) spec(a *view.Agent, dir, cwd string, checked *view.Tool) (sandbox.Spec, func(), error) {
	none := func() {}
	home, err := r.home(a)
	if err != nil {
		return sandbox.Spec{}, none, err
	}
	ws, err := r.Workspace(a, dir)
	if err != nil {
		return sandbox.Spec{}, none, err
	}
	mounts, err := r.mounts(a)
	if err != nil {
		return sandbox.Spec{}, none, err
	}
	var tools []*view.Tool
	if checked != nil {
		tools = append(tools, checked)
	}
	prepared, err := a.Prepare(r.Layout, a.Executable, tools...)
	if err != nil {
		return sandbox.Spec{}, none, err
	}
	return sandbox.Spec{
		Identity: a.Owner, UserName: a.User,
		View: prepared.Dir, Tools: r.Ctxtool, Tsh: r.Tsh,
		Home: home, Workspace: ws, Mounts: mounts,
		Network: a.Network, Cwd: cwd,
	}, prepared.Release, nil
}

// home makes sure that the agent has its private home and returns its path.
func (r *Runner) home(a *view.Agent) (string, error) {
	home := r.Layout.AgentHome(a.Owner.UID, r.Agent)
	return home, r.make(a, filepath.Join(home, "session"))
}

// make creates a directory of the agent's owner, private, below the tree.
func (r *Runner) make(a *view.Agent, dir string) error {
	rel, err := filepath.Rel(r.Layout.Root, dir)
	if err != nil {
		return errdefs.New(errdefs.Internal, "%s: %w", dir, err)
	}
	root, err := atomicfile.OpenDir(r.Layout.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	err = a.Owner.Do(func() error {
		d, err := root.MkdirAll(rel, 0o700)
		if err == nil {
			d.Close()
		}
		return err
	})
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "agent home %s: %w", dir, err)
	}
	return nil
}

// private is the empty workspace of a session that was never given one.
func (r *Runner) private(a *view.Agent, s libctx.Session) string {
	return filepath.Join(r.Layout.AgentHome(a.Owner.UID, r.Agent), "data", "workspace", string(s))
}

// Private makes the empty workspace of a session that was never given one.
func (r *Runner) Private(a *view.Agent, s libctx.Session) (string, error) {
	dir := r.private(a, s)
	return dir, r.make(a, dir)
}

// Changed names what of a workspace's protected objects is not, on the host, what
// it was when spec was made: exchanged, removed, or new.
func (r *Runner) Changed(a *view.Agent, spec sandbox.Spec) ([]string, error) {
	now, err := r.Workspace(a, spec.Workspace.Dir)
	if err != nil {
		return nil, err
	}
	var names []string
	missing := func(from, in []sandbox.Bind) {
		for _, b := range from {
			if !slices.Contains(in, b) && !slices.Contains(names, b.Source) {
				names = append(names, b.Source)
			}
		}
	}
	missing(spec.Workspace.ReadOnly, now.ReadOnly)
	missing(now.ReadOnly, spec.Workspace.ReadOnly)
	return names, nil
}

// Workspace checks a host directory and says how a sandbox shows it. Programs of
// the suite that lie in it can not be changed: what the daemon and its clients
// start next would run outside of any sandbox. The agent's own private workspaces lie in the tree; they are the one exception
// from the rule that nothing of the tree may be a workspace, and only if no link
// leads there, because the agent can write around them.
func (r *Runner) Workspace(a *view.Agent, dir string) (sandbox.Workspace, error) {
	base := r.private(a, "")
	if filepath.Dir(dir) != filepath.Clean(base) {
		protect := a.Protection()
		ws, err := workspace.Resolve(dir, a.Owner, r.Layout.Protected(), protect)
		if own := below(ws.Dir, r.Programs); err == nil && len(own) > 0 {
			protect.Lines = append(own, protect.Lines...)
			return workspace.Resolve(dir, a.Owner, r.Layout.Protected(), protect)
		}
		return ws, err
	}
	ws, err := workspace.Resolve(dir, a.Owner, nil, a.Protection())
	if err == nil && ws.Dir != dir {
		return sandbox.Workspace{}, errdefs.New(errdefs.Invalid, "workspace %s: a link leads to %s", dir, ws.Dir)
	}
	return ws, err
}

// below is the paths that lie below dir, relative to it.
func below(dir string, paths []string) (rel []string) {
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(p, dir+"/"); ok && dir != "" {
			rel = append(rel, rest)
		}
	}
	return rel
}

// mounts resolves the lines of the mount control that the recipe does not make
// itself.
func (r *Runner) mounts(a *view.Agent) (mount.Table, error) {
	var extra mount.Table
	for _, line := range a.Mounts {
		if paths.Below(line.Target, paths.InRoot) || paths.Below(line.Target, paths.InHome) {
			continue
		}
		if line.NoExec() {
			return nil, errdefs.New(errdefs.Invalid, "mount %s: noexec can not be had for it", line.Target)
		}
		protected := r.Layout.Protected()
		if shared := filepath.Join(paths.InRoot, "shared"); paths.Below(line.Source, paths.InRoot) {
			if !paths.Below(line.Source, shared) || line.Source == shared {
				return nil, errdefs.New(errdefs.Invalid, "mount %s: of the tree only places below %s can be mounted, not %s", line.Target, shared, line.Source)
			}
			line.Source, protected = r.Layout.HostPath(line.Source), nil
		}
		ws, err := workspace.Resolve(line.Source, a.Owner, protected, workspace.Protect{})
		if err != nil {
			why := strings.TrimPrefix(err.Error(), "workspace ")
			return nil, errdefs.New(errdefs.KindOf(err), "mount %s: source %s", line.Target, why)
		}
		if protected == nil && ws.Dir != line.Source {
			return nil, errdefs.New(errdefs.Invalid, "mount %s: a link leads to %s", line.Target, ws.Dir)
		}
		line.Source = ws.Dir
		extra = append(extra, line)
	}
	return extra, nil
}

// CheckCwd refuses a directory that the agent will not find inside: outside of
// what its sandbox shows is errdefs.Denied, missing is errdefs.NotFound.
func (r *Runner) CheckCwd(a *view.Agent, ws sandbox.Workspace, cwd string) error {
	if filepath.Clean(cwd) != cwd {
		return errdefs.New(errdefs.Invalid, "cwd %q is not a clean path", cwd)
	}
	places := []struct{ inside, host string }{
		{paths.InWorkspace, ws.Dir},
		{paths.InHome, r.Layout.AgentHome(a.Owner.UID, r.Agent)},
	}
	for _, m := range a.Mounts {
		if paths.Below(m.Target, paths.InRoot) {
			continue // the tree on the host is not what a sandbox shows of it
		}
		places = append(places, struct{ inside, host string }{m.Target, r.Layout.HostPath(m.Source)})
	}
	for _, p := range places {
		if !paths.Below(cwd, p.inside) {
			continue
		}
		host := filepath.Join(p.host, cwd[len(p.inside):])
		return a.Owner.Do(func() error {
			st, err := os.Stat(host)
			if err == nil && !st.IsDir() {
				return errdefs.New(errdefs.Invalid, "cwd %s is not a directory", strconv.Quote(cwd))
			}
			if err != nil { // the path of the host is not what the agent calls the place
				var at *fs.PathError
				if errors.As(err, &at) {
					err = at.Err
				}
				return errdefs.New(errdefs.KindOf(err), "cwd %s: %w", strconv.Quote(cwd), err)
			}
			// Calls are judged by where cwd says they start; a link would start
			// them elsewhere. (The place itself may be reached by one.)
			base, err1 := filepath.EvalSymlinks(p.host)
			real, err2 := filepath.EvalSymlinks(host)
			if err1 != nil || err2 != nil || real != filepath.Join(base, cwd[len(p.inside):]) {
				return errdefs.New(errdefs.Invalid, "cwd %s leads through a link", strconv.Quote(cwd))
			}
			return nil
		})
	}
	return errdefs.New(errdefs.Denied, "cwd %s is outside of what the agent sees", strconv.Quote(cwd))
}
