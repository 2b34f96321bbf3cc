package view

import (
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/admit"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"golang.org/x/sys/unix"
)

// OpenExecutable opens the agent's executable, agent/NAME. It must be a regular
// file of root or the owner that nobody else can write and that the agent may
// execute; otherwise the error is errdefs.Denied, or errdefs.NotFound, and names
// the file. The caller closes it.
func (a *Agent) OpenExecutable(l paths.Layout) (*os.File, error) {
	root, err := atomicfile.OpenDir(l.Root)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "tree %s: %w", l.Root, bare(err))
	}
	defer root.Close()
	f, _, err := a.openExecutable(root)
	if err != nil {
		return nil, refused(a.Name, err)
	}
	return f, nil
}

func (a *Agent) openExecutable(root *atomicfile.Dir) (*os.File, unix.Stat_t, error) {
	name := "agent/" + string(a.Name)
	f, st, err := open(root, name, name, a.Owner.UID)
	if err != nil {
		return nil, st, err
	}
	if st.Size > libctx.MaxToolFile {
		err = errdefs.New(errdefs.TooBig, "%s: is longer than %d bytes", name, libctx.MaxToolFile)
	} else if !admit.MayExecute(modeOf(&st), st.Uid, st.Gid, a.Owner) {
		err = errdefs.New(errdefs.Denied, "%s: is not executable for uid %d (mode %04o)", name, a.Owner.UID, st.Mode&0o777).
			WithHint("chmod +x %s", name)
	}
	if err != nil {
		f.Close()
		return nil, st, err
	}
	return f, st, nil
}
