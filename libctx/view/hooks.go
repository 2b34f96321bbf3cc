package view

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// HooksDir is where the hooks of an agent and of a tool are, below their control
// directories. No view shows it.
const HooksDir = "hooks"

// When is which of the hooks of a call.
type When string

// The directories below HooksDir.
const (
	Before When = "pre.d"
	After  When = "post.d"
)

// Hook is an executable that looks at calls (docs/reference/hooks.md). It was
// opened and may be believed: what is copied is what was looked at, whatever has
// its name since. Close it.
type Hook struct {
	Name string // agent/NAME.d/hooks/pre.d/FILE, or the like below the inside path of a tool
	file *os.File
	stat unix.Stat_t
}

// Close closes the file.
func (h *Hook) Close() error { return h.file.Close() }

// Copy writes the program. One that was written to since it was looked at is
// errdefs.Busy.
func (h *Hook) Copy(to io.Writer) error {
	n, err := io.Copy(to, io.NewSectionReader(h.file, 0, h.stat.Size))
	var now unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(h.file.Fd()), &now)
	}
	switch {
	case err != nil:
		return errdefs.New(errdefs.KindOf(err), "%s: %w", h.Name, bare(err))
	case n != h.stat.Size || now.Size != h.stat.Size || now.Mtim != h.stat.Mtim:
		return errdefs.New(errdefs.Busy, "%s: was changed while it was copied", h.Name)
	}
	return nil
}

// Hooks opens the hooks for calls of one tool, those of the agent and then those
// of the tool, each in the order of names. The tool is given by its inside path; ""
// is none. The caller closes them all.
//
// One that can not be believed, or is none, is an error, and then there are no
// hooks: errdefs.Denied naming the file or directory that is a link, belongs to a
// stranger, can be written by others, or that the agent may not execute;
// errdefs.Invalid, errdefs.TooBig.
func (a *Agent) Hooks(l paths.Layout, tool string, when When) ([]*Hook, error) {
	var all []*Hook
	var wrong []error
	found := func(h *Hook, err error) {
		if err != nil {
			wrong = append(wrong, err)
		} else {
			all = append(all, h)
		}
	}
	a.ownHooks(l, when, found)
	if tool != "" {
		a.toolHooks(l, tool, when, found)
	}
	if len(wrong) == 0 {
		return all, nil
	}
	for _, h := range all {
		h.Close()
	}
	return nil, wrong[0]
}

// HookErrors is everything that is wrong with the hooks of the agent, before and
// after calls, or with those of a tool, given by its inside path.
func (a *Agent) HookErrors(l paths.Layout, tool string) (wrong []error) {
	for _, when := range []When{Before, After} {
		found := func(h *Hook, err error) {
			if err != nil {
				wrong = append(wrong, err)
			} else {
				h.Close()
			}
		}
		if tool == "" {
			a.ownHooks(l, when, found)
		} else {
			a.toolHooks(l, tool, when, found)
		}
	}
	return wrong
}

// ownHooks calls found for each hook of the agent, or with what is wrong with it or
// with the place where it should be. Whoever is found closes it.
func (a *Agent) ownHooks(l paths.Layout, when When, found func(*Hook, error)) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		found(nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err)))
		return
	}
	defer root.Close()
	own := "agent/" + string(a.Name) + ".d"
	if none(root, own) {
		return
	}
	err = a.withControl(l, root, func(d *atomicfile.Dir) error { return a.hooksOf(d, own, when, found) })
	if err != nil {
		found(nil, err)
	}
}

// toolHooks is ownHooks for the hooks of a tool.
func (a *Agent) toolHooks(l paths.Layout, tool string, when When, found func(*Hook, error)) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		found(nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err)))
		return
	}
	defer root.Close()
	dir, name := path.Dir(tool), path.Base(tool)
	if none(root, strings.TrimPrefix(tool, paths.InRoot+"/")+".d") {
		return
	}
	err = a.within(root, dir, func(d *atomicfile.Dir) error {
		var st unix.Stat_t
		if err := unix.Fstat(d.FD(), &st); err != nil {
			return err
		}
		// Who can write the directory can exchange one tool's hooks for another's.
		if err := trusted(dir, &st, a.Owner.UID); err != nil {
			return err
		}
		control, _, err := openDir(d, name+".d", tool+".d", a.Owner.UID)
		if errdefs.Is(err, errdefs.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer control.Close()
		return a.hooksOf(control, tool+".d", when, found)
	})
	if err != nil && !strings.Contains(err.Error(), dir) {
		err = errdefs.New(errdefs.KindOf(err), "%s: %w", dir, bare(err))
	}
	if err != nil {
		found(nil, err)
	}
}

// none reports that a control directory has no hooks, which most have not: it is
// asked for every call. Whatever else is there is looked at with care.
func none(root *atomicfile.Dir, control string) bool {
	_, err := root.Lstat(control + "/" + HooksDir)
	return errors.Is(err, fs.ErrNotExist)
}

// hooksOf looks through the hooks in one control directory. Of a directory of
// root's they must be root's, as everything in it.
func (a *Agent) hooksOf(control *atomicfile.Dir, name string, when When, found func(*Hook, error)) error {
	var st unix.Stat_t
	if err := unix.Fstat(control.FD(), &st); err != nil {
		return errdefs.New(errdefs.IO, "%s: %w", name, err)
	}
	if err := trusted(name, &st, a.Owner.UID); err != nil {
		return err
	}
	at := control
	for _, sub := range []string{HooksDir, string(when)} {
		next, _, err := openDir(at, sub, name+"/"+sub, st.Uid)
		if at != control {
			at.Close()
		}
		if errdefs.Is(err, errdefs.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at, name = next, name+"/"+sub
	}
	defer at.Close()
	files, err := names(at)
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
	}
	n := 0
	for _, file := range files {
		if strings.HasPrefix(file, ".") {
			continue // of somebody who writes a file there at this moment
		}
		if n++; n > libctx.MaxHooks {
			return errdefs.New(errdefs.TooBig, "%s: has more than %d hooks", name, libctx.MaxHooks)
		}
		found(a.openHook(at, file, name+"/"+file, st.Uid))
	}
	return nil
}

// openHook opens one hook.
func (a *Agent) openHook(d *atomicfile.Dir, file, name string, owner uint32) (*Hook, error) {
	if _, err := libctx.ParseTool(file); err != nil {
		return nil, errdefs.New(errdefs.Invalid, "%q is no name of a hook", name).WithHint("a letter or digit, then letters, digits and . _ + -")
	}
	f, st, err := open(d, file, name, owner)
	if err != nil {
		return nil, err
	}
	switch {
	case st.Size > libctx.MaxHookFile:
		err = errdefs.New(errdefs.TooBig, "%s: is longer than %d bytes", name, libctx.MaxHookFile)
	case !admit.MayExecute(modeOf(&st), st.Uid, st.Gid, a.Owner):
		err = errdefs.New(errdefs.Denied, "%s: is not executable for uid %d (mode %04o)", name, a.Owner.UID, st.Mode&0o777).
			WithHint("chmod +x it, or give it a name that begins with a dot")
	default:
		return &Hook{name, f, st}, nil
	}
	f.Close()
	return nil, err
}

// openDir opens a directory that must be trusted. What has its name and is none
// is errdefs.Denied, nothing of its name errdefs.NotFound. The caller closes it.
func openDir(d *atomicfile.Dir, rel, name string, owner uint32) (*atomicfile.Dir, unix.Stat_t, error) {
	st, err := d.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, st, errdefs.New(errdefs.NotFound, "%s: is not there", name)
	case err != nil:
		return nil, st, errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
	case !isDir(&st):
		return nil, st, distrust(errdefs.New(errdefs.Denied, "%s: is %s, not a directory", name, kindOf(&st)))
	}
	sub, err := d.Sub(rel)
	if err != nil {
		return nil, st, errdefs.New(errdefs.KindOf(err), "%s: %w", name, bare(err))
	}
	if err = unix.Fstat(sub.FD(), &st); err != nil {
		err = errdefs.New(errdefs.IO, "%s: %w", name, err)
	} else {
		err = trusted(name, &st, owner)
	}
	if err != nil {
		sub.Close()
		return nil, st, err
	}
	return sub, st, nil
}
