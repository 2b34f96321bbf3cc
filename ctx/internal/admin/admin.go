// Package admin is the client of ctxd admin, which changes a tree of root's for
// its users (libctx/adminwire).
package admin

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/adminwire"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/paths"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
	"golang.org/x/sys/unix"
)

// patience is how long an answer is waited for: longer than the server takes at
// most.
const patience = 2 * libctx.AdminUnitsWait

// Needed reports whether changes of a tree go through ctxd admin: always in a tree
// of root's for everybody else, and for root if it listens.
func Needed(l paths.Layout) bool {
	var st unix.Stat_t
	if unix.Stat(l.Root, &st) != nil || st.Uid != 0 {
		return false
	}
	if os.Geteuid() != 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := Ask(ctx, l, adminwire.Request{Op: adminwire.Ping}, nil)
	return err == nil
}

// Ask makes a request and returns the answer, or the refusal as an error. The
// program is what follows the request, nil for none. Nobody there is
// errdefs.Unavailable.
func Ask(ctx context.Context, l paths.Layout, r adminwire.Request, program io.Reader) (adminwire.Reply, error) {
	line, err := r.Encode()
	if err != nil {
		return adminwire.Reply{}, err
	}
	path := paths.AdminSocket(l.Root)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := unixsock.Dial(ctx, path)
	if errdefs.Is(err, errdefs.Unavailable) {
		return adminwire.Reply{}, errdefs.New(errdefs.Unavailable, "the tree %s is root's, and ctxd admin does not listen", l.Root).
			WithHint("as root: systemctl enable --now ctxd-admin.socket, or ctxd --root %s admin", l.Root)
	}
	if err != nil {
		return adminwire.Reply{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	// Who refuses answers before it has read everything: that the rest could not be
	// written is its answer's to explain.
	_, err = c.Write(line)
	if err == nil && program != nil {
		_, err = io.Copy(c, program)
	}
	if err == nil {
		err = c.CloseWrite()
	}
	answer, rerr := wire.NewLines(c, libctx.MaxFrame).Next()
	switch {
	case rerr == nil:
		return r.DecodeReply(answer)
	case ctx.Err() != nil:
		return adminwire.Reply{}, errdefs.New(errdefs.KindOf(ctx.Err()), "ctxd admin: no answer: %w", context.Cause(ctx))
	case err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET):
		return adminwire.Reply{}, errdefs.New(errdefs.KindOf(err), "ctxd admin: %w", err)
	}
	return adminwire.Reply{}, errdefs.New(errdefs.Unavailable, "ctxd admin ended without an answer").
		WithHint("its log may say why: journalctl -u ctxd-admin")
}
