package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/capture"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"cortexfs.org/libctx/termwire"
	"cortexfs.org/libctx/unixsock"
	"cortexfs.org/libctx/wire"
)

// listen binds the socket. Only one launcher gets here; if the socket of an
// earlier one is alive its launcher was killed, and its sandbox is just going.
func listen(path string) (*unixsock.Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), libctx.TermFarewell)
	defer cancel()
	for {
		l, err := unixsock.Listen(path, unixsock.Options{Perm: 0o600, UID: -1, GID: -1})
		if !errdefs.Is(err, errdefs.Exists) || ctx.Err() != nil {
			return l, err
		}
		if derr := wait(ctx, path); derr != nil && !errdefs.Is(derr, errdefs.Unavailable) {
			return nil, err // something else is in the way
		}
	}
}

// wait waits for the end of a connection, which tells when who listens is gone.
// That nobody does is errdefs.Unavailable.
func wait(ctx context.Context, path string) error {
	c, err := unixsock.Dial(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	io.Copy(io.Discard, c)
	return nil
}

// outlive sees the terminal of an earlier launcher out that was killed and had
// its socket elsewhere, with another runtime directory; the link still leads
// there. Its socket is removed.
func (l *launcher) outlive() error {
	old, err := os.Readlink(l.layout.TerminalLink(l.place.Owner.UID, l.place.Agent, l.place.Session))
	own := l.layout.TerminalSocket(l.place.Agent, l.place.Session)
	if err != nil || old == own || !terminal.IsSocket(old, l.place.Agent, l.place.Session) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), libctx.TermFarewell)
	defer cancel()
	for err == nil && ctx.Err() == nil {
		err = wait(ctx, old)
	}
	switch {
	case err == nil:
		return errdefs.New(errdefs.Exists, "terminal %s: something listens at %s", l.place, old)
	case errdefs.Is(err, errdefs.Unavailable):
		os.Remove(old)
		terminal.Sweep(old)
	}
	return nil
}

// ask waits until the terminal answers at its socket as it answers everybody.
func ask(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, libctx.TerminalStart,
		errdefs.New(errdefs.Timeout, "its socket did not answer in %v", libctx.TerminalStart))
	defer cancel()
	c, err := unixsock.Dial(ctx, path)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	frame, err := hello(c)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refusal, ok := frame.(*termwire.Error); ok {
		return errdefs.New(refusal.Code, "its socket refuses us: %s", wire.Clean([]byte(refusal.Message)))
	}
	if _, ok := frame.(*termwire.Hello); err != nil || !ok {
		if err == nil {
			err = errors.New("another frame")
		}
		return errdefs.New(errdefs.Protocol, "its socket answered no hello: %w", err)
	}
	if bye, err := termwire.MarshalRequest(&termwire.Detach{}); err == nil {
		c.Write(bye)
	}
	return nil
}

// hello asks to watch, and returns the first frame.
func hello(c io.ReadWriter) (termwire.Frame, error) {
	line, err := termwire.MarshalRequest(&termwire.Watch{})
	if err == nil {
		_, err = c.Write(line)
	}
	if err != nil {
		return nil, err
	}
	if line, err = wire.NewLines(c, libctx.MaxFrame).Next(); err != nil {
		return nil, err
	}
	return termwire.DecodeFrame(line)
}

// maxSaid is how many bytes are kept of what ctxterm says, for the message of a
// start that failed.
const maxSaid = 4 << 10

// words passes on what ctxterm says, and keeps some of it. Writing never fails:
// that nobody hears it must not end a terminal.
type words struct {
	to io.Writer

	mu   sync.Mutex
	kept *capture.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.Write(p)
	w.to.Write(p)
	return len(p), nil
}

// last is the last line, as the end of a sentence.
func (w *words) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.TrimSpace(w.kept.Text())
	if text == "" {
		return ""
	}
	return ": " + wire.Clean(bytes.TrimSpace([]byte(text[strings.LastIndexByte(text, '\n')+1:])))
}
