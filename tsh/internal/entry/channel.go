package entry

import (
	"errors"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// streams are the descriptors that become 0, 1 and 2. Until then they are
// close-on-exec; a step that refuses ends, and they with it.
type streams []int

// await reads the one request and the streams that come with it. The end of the
// channel, at any place, is errdefs.Cancelled: the launcher gave the sandbox up,
// or died.
func await(channel int) (r sandbox.Request, s streams, err error) {
	head := make([]byte, sandbox.RequestHead)
	rights := make([]byte, unix.CmsgSpace(3*4))
	n, err := again(func() (n int, err error) {
		var size int
		n, size, _, _, err = unix.Recvmsg(channel, head, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		if err == nil {
			rights = rights[:size]
		}
		return n, err
	})
	if err != nil {
		return r, nil, err
	}
	size, err := sandbox.ParseHead(head[:n])
	if err != nil {
		return r, nil, err
	}
	if s, err = received(rights); err != nil {
		return r, nil, err
	}
	body := make([]byte, size)
	for rest := body; len(rest) > 0; {
		n, err := again(func() (int, error) { return unix.Read(channel, rest) })
		if err != nil {
			return r, nil, err
		}
		rest = rest[n:]
	}
	r, err = sandbox.ParseRequest(body)
	return r, s, err
}

// again reads, as often as a signal comes between.
func again(read func() (int, error)) (int, error) {
	for {
		n, err := read()
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, errdefs.New(errdefs.Internal, "read the request: %w", err)
		case n == 0:
			return 0, errdefs.New(errdefs.Cancelled, "the launch was given up")
		}
		return n, nil
	}
}

// received is the three descriptors of a control message.
func received(rights []byte) (streams, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err == nil && len(messages) == 1 {
		var fds []int
		if fds, err = unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 3 {
			return fds, nil
		}
	}
	return nil, errdefs.New(errdefs.Protocol, "the request came without three streams")
}

// install makes the streams the standard streams.
func (s streams) install() error {
	for to, from := range s {
		if err := unix.Dup3(from, to, 0); err != nil {
			return errdefs.New(errdefs.Internal, "set up descriptor %d: %w", to, err)
		}
		unix.Close(from)
	}
	return nil
}

// answer writes to the launcher. A line fits, so it never blocks; if nobody
// reads, nobody wants to know.
func answer(channel int, text string) {
	unix.SendmsgN(channel, []byte(text), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}
