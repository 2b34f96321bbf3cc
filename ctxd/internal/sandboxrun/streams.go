package sandboxrun

import (
	"context"
	"io"
	"os"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// streams are the standard streams of one payload.
type streams struct {
	theirs         []int    // what it gets as 0, 1 and 2, until it has them
	stdin          *os.File // nil if it reads /dev/null
	stdout, stderr *os.File
}

// newStreams makes pipes, or /dev/null for an input that there is none of.
func newStreams(stdin bool) (*streams, error) {
	s := &streams{}
	var err error
	if stdin {
		s.stdin, err = s.pipe(false)
	} else {
		var null int
		if null, err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			s.theirs = append(s.theirs, null)
		}
	}
	if err == nil {
		s.stdout, err = s.pipe(true)
	}
	if err == nil {
		s.stderr, err = s.pipe(true)
	}
	if err != nil {
		s.close()
		return nil, errdefs.New(errdefs.KindOf(err), "sandbox: streams: %w", err)
	}
	return s, nil
}

// pipe makes a pipe and returns our end, which does not block a thread. Theirs
// is as programs expect it.
func (s *streams) pipe(theyWrite bool) (*os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	ours, theirs := p[1], p[0]
	if theyWrite {
		ours, theirs = theirs, ours
	}
	s.theirs = append(s.theirs, theirs)
	err := unix.SetNonblock(ours, true)
	return os.NewFile(uintptr(ours), "stream"), err
}

// handedOver closes the payload's ends here, so that its output ends with it.
func (s *streams) handedOver() {
	for _, fd := range s.theirs {
		unix.Close(fd)
	}
	s.theirs = nil
}

func (s *streams) close() {
	s.handedOver()
	for _, f := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

// expire bounds what is still read and written when the payload is gone: nobody
// in there can write any more, and what is left is in the pipes, unless a
// descriptor was passed to a process outside.
func (s *streams) expire() {
	end := time.Now().Add(libctx.DrainAfterExit)
	s.stdout.SetReadDeadline(end)
	s.stderr.SetReadDeadline(end)
	if s.stdin != nil {
		s.stdin.SetWriteDeadline(time.Now())
	}
}

// feed writes standard input until it is all written or nobody reads it.
func (s *streams) feed(data []byte) {
	if s.stdin == nil {
		return
	}
	s.stdin.Write(data)
	s.stdin.Close()
}

// pump passes output on until its end. After ctx is done or the writer failed it
// only empties the pipe, so that the payload can end.
func pump(ctx context.Context, from *os.File, to io.Writer, fail func(error)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && to != nil && ctx.Err() == nil {
			if _, werr := to.Write(buf[:n]); werr != nil {
				fail(werr)
				to = nil
			}
		}
		if err != nil {
			return
		}
	}
}
