package admin

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// rest is the program that follows a request: exactly as many bytes as it said.
type rest struct {
	conn *net.UnixConn
	from io.Reader // what was read of the connection already, and the rest of it
	left int64
}

func (r *rest) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.conn.SetReadDeadline(time.Now().Add(libctx.AdminProgramWait))
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	switch {
	case n > 0 || err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		return 0, errdefs.New(errdefs.Invalid, "the program ends %d bytes too early", r.left)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, errdefs.New(errdefs.Timeout, "no more of the program came within %s", libctx.AdminProgramWait)
	}
	return 0, errdefs.New(errdefs.KindOf(err), "the program: %w", err)
}
