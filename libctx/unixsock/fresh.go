package unixsock

import (
	"os"
	"path/filepath"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// ListenFresh binds a path that its caller has just made up, so that nobody else
// listens there or ever wants to: without the lock of Listen, and leaving no file
// beside the socket. Something that is there all the same is errdefs.Exists. The
// caller owns the listener; when it has closed it, it removes the file.
func ListenFresh(path string, o Options) (*Listener, error) {
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "listen on %s: %w", path, err)
	}
	defer dir.Close()
	name := filepath.Base(path)
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return nil, errdefs.New(errdefs.Exists, "listen on %s: something is there", path)
	}
	l := &Listener{path: path}
	if err := l.make(dir, name, o); err != nil {
		return nil, err
	}
	return l, nil
}
