package entry

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/sandbox"
	"golang.org/x/sys/unix"
)

// streams are the descriptors that become 0, 1, 2 and, if there are more, 3 and
// so on. Until then they are close-on-exec; a step that refuses ends, and they
// with it.
type streams []int

// standard is how many streams every payload has.
const standard = 3

// await reads the one request and the streams that come with it. The end of the
// channel, at any place, is errdefs.Cancelled: the launcher gave the sandbox up,
// or died.
func await(channel int) (r sandbox.Request, s streams, err error) {
	head := make([]byte, sandbox.RequestHead)
	rights := make([]byte, unix.CmsgSpace((standard+libctx.MaxSandboxPassed)*4))
	n, err := again(func() (n int, err error) {
		var size int
		// Of more than there is room for the kernel gives some; the number is
		// compared with the request's.
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
	if r, err = sandbox.ParseRequest(body); err == nil && len(s) != standard+r.Passed {
		err = errdefs.New(errdefs.Protocol, "the request came with %d descriptors, not %d", len(s), standard+r.Passed)
	}
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

// received is the descriptors of a control message.
func received(rights []byte) (streams, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err == nil && len(messages) == 1 {
		var fds []int
		if fds, err = unix.ParseUnixRights(&messages[0]); err == nil && len(fds) >= standard {
			return fds, nil
		}
	}
	return nil, errdefs.New(errdefs.Protocol, "the request came without three streams")
}

// install makes the streams the payload's descriptors, the only ones that survive
// its execution. It returns the channel, which may have had to make room.
func (s streams) install(channel int) (int, error) {
	all := append(slices.Clone(s), channel)
	for i, fd := range all {
		if fd >= len(s) {
			continue
		}
		moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, len(s))
		if err != nil {
			return channel, errdefs.New(errdefs.Internal, "move descriptor %d: %w", fd, err)
		}
		unix.Close(fd)
		all[i] = moved
	}
	channel = all[len(s)]
	for to, from := range all[:len(s)] {
		// What this program's runtime has open may go, but for its poller: it
		// runs until the payload has the process.
		if what, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(to)); err == nil && strings.HasPrefix(what, "anon_inode:") {
			return channel, errdefs.New(errdefs.Internal, "descriptor %d is in use (%s)", to, what)
		}
		if err := unix.Dup3(from, to, 0); err != nil {
			return channel, errdefs.New(errdefs.Internal, "set up descriptor %d: %w", to, err)
		}
		unix.Close(from)
	}
	return channel, nil
}

// answer writes to the launcher. A line fits, so it never blocks; if nobody
// reads, nobody wants to know.
func answer(channel int, text string) {
	unix.SendmsgN(channel, []byte(text), nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
}
