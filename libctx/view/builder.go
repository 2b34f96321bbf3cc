package view

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/atomicfile"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// builder writes one view, into a directory nobody else can write.
type builder struct {
	dir   *atomicfile.Dir
	made  []string
	bytes int64
}

// mkdirAll makes a directory and those above it.
func (b *builder) mkdirAll(rel string) error {
	if rel == "." || slices.Contains(b.made, rel) {
		return nil
	}
	if err := b.mkdirAll(path.Dir(rel)); err != nil {
		return err
	}
	b.made = append(b.made, rel)
	return mkdir(b.dir, rel)
}

// mkdir makes a directory that everybody may read, whatever the umask.
func mkdir(d *atomicfile.Dir, rel string) error {
	err := unix.Mkdirat(d.FD(), rel, 0o755)
	if err == nil {
		err = unix.Fchmodat(d.FD(), rel, 0o755, 0)
	}
	if err != nil {
		return errdefs.New(errdefs.KindOf(err), "make %s: %w", joinPath(d, rel), err)
	}
	return nil
}

func (b *builder) write(rel string, text []byte, perm fs.FileMode) error {
	f, err := b.dir.Create(rel, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// copy copies an open executable whose stat is st, and sees to it that it did
// not change meanwhile.
func (b *builder) copy(rel string, from *os.File, st *unix.Stat_t) error {
	if b.bytes += st.Size; b.bytes > libctx.MaxViewBytes {
		return errdefs.New(errdefs.TooBig, "%s: with it the agent's tools are longer than %d bytes", rel, int64(libctx.MaxViewBytes))
	}
	f, err := b.dir.Create(rel, 0o555)
	if err != nil {
		return err
	}
	// From the start: a file that was looked up once may be copied again.
	_, err = from.Seek(0, io.SeekStart)
	var n int64
	if err == nil {
		n, err = io.Copy(f, io.LimitReader(from, st.Size))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	// The change time does not count: it moves when the name is taken away,
	// and the content is still the one that was checked.
	var now unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &now); err != nil {
		return err
	}
	if n != st.Size || now.Size != st.Size || now.Mtim != st.Mtim {
		return errChanged
	}
	return nil
}

func joinPath(d *atomicfile.Dir, rel string) string { return filepath.Join(d.Path(), rel) }

func splitPath(p string) (dir, name string) { return filepath.Dir(p), filepath.Base(p) }
