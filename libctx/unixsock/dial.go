package unixsock

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// maxPath is what sun_path holds before its NUL.
const maxPath = 107

// Dial connects to the socket at path, which may be a link to one and may be
// longer than the kernel takes. Nobody there is errdefs.Unavailable; no
// permission is errdefs.Denied.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
	address := path
	if len(path) > maxPath {
		dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, dialError(path, err)
		}
		defer dir.Close()
		address = procPath(dir, filepath.Base(path))
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", address)
	if err != nil {
		return nil, dialError(path, err)
	}
	return c.(*net.UnixConn), nil
}

func dialAt(dir *os.File, name string) (net.Conn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: procPath(dir, name)})
}

func dialError(path string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOTSOCK) {
		return errdefs.New(errdefs.Unavailable, "%s: nothing listens there", path)
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %w", path, err)
}
