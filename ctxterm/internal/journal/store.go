package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"golang.org/x/sys/unix"
)

// store is the event files in their directory.
type store struct {
	dir       *os.File
	file      *os.File // the newest
	size      int64    // of it
	last      uint64   // number of the last event
	fileBytes int64
	files     int
}

// openStore opens the newest event file, cuts off an unfinished last line and
// finds the last event. A file in which no line ends where one could is not
// touched but rotated away.
func openStore(dir *os.File, fileBytes int64, files int) (*store, error) {
	// A descriptor of our own, which can be synced.
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, failure("events", err)
	}
	s := &store{dir: os.NewFile(uintptr(fd), "events"), fileBytes: fileBytes, files: files}
	if err := s.begin(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *store) begin() (err error) {
	if s.file, err = s.open(0, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT); err != nil {
		return err
	}
	end, whole, err := s.tail(s.file)
	if err != nil {
		return err
	}
	for n := 1; s.last == 0 && n < s.files; n++ {
		if err := s.older(n); err != nil {
			return err
		}
	}
	if s.size = end; !whole {
		return s.rotate()
	}
	if err := s.file.Truncate(end); err != nil {
		return failure(terminal.EventFile(0), err)
	}
	if err := s.sync(); err != nil {
		return err
	}
	return s.syncDir()
}

// older finds the last event in an older file, if there is one.
func (s *store) older(n int) error {
	f, err := s.open(n, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	_, _, err = s.tail(f)
	return err
}

// open opens an event file.
func (s *store) open(n, flags int) (*os.File, error) {
	name := terminal.EventFile(n)
	fd, err := unix.Openat(int(s.dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, failure(name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != uint32(os.Geteuid()) || st.Nlink > 1) {
		f.Close()
		return nil, errdefs.New(errdefs.Denied, "%s: not a regular file of this user with one name", name)
	}
	if err == nil && st.Mode&0o7777 != 0o600 {
		err = unix.Fchmod(fd, 0o600)
	}
	if err != nil {
		f.Close()
		return nil, failure(name, err)
	}
	return f, nil
}

// maxTail is how much of the end of a file is read: the last whole line and an
// unfinished one are in it.
const maxTail = 2 * libctx.MaxTermEvent

// tail finds the end of the last whole line of a file, and sets last to the
// largest number among the events at the end. It is not whole if no line ends
// there.
func (s *store) tail(f *os.File) (end int64, whole bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, false, failure(f.Name(), err)
	}
	from := max(0, size-maxTail)
	text := make([]byte, size-from)
	if _, err := f.ReadAt(text, from); err != nil {
		return 0, false, failure(f.Name(), err)
	}
	lines := text[:bytes.LastIndexByte(text, '\n')+1]
	if len(lines) == 0 && from > 0 {
		return size, false, nil
	}
	for line := range bytes.Lines(lines) { // the first one may be half a line, which is no event
		if e, err := terminal.ParseEvent(line); err == nil {
			s.last = max(s.last, e.Seq)
		}
	}
	return from + int64(len(lines)), true, nil
}

// append writes lines to the newest file. If that fails, no part of a line is
// left behind, as far as the disk lets us.
func (s *store) append(lines []byte) error {
	if _, err := s.file.Write(lines); err != nil {
		s.file.Truncate(s.size)
		return failure(terminal.EventFile(0), err)
	}
	s.size += int64(len(lines))
	return nil
}

// rotate gives every file the next number and begins a new one; the oldest goes.
// Each step leaves the files in their order.
func (s *store) rotate() error {
	if err := s.sync(); err != nil {
		return err
	}
	for n := s.files - 1; n > 0; n-- {
		from, to := terminal.EventFile(n-1), terminal.EventFile(n)
		if err := unix.Renameat(int(s.dir.Fd()), from, int(s.dir.Fd()), to); err != nil && err != unix.ENOENT {
			return failure(from, err)
		}
	}
	file, err := s.open(0, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	s.file.Close()
	s.file, s.size = file, 0
	return s.syncDir()
}

// sync makes what was written durable.
func (s *store) sync() error {
	for {
		err := unix.Fdatasync(int(s.file.Fd()))
		if err != unix.EINTR {
			return failure(terminal.EventFile(0), err)
		}
	}
}

// syncDir makes the names of the files durable.
func (s *store) syncDir() error { return failure("events", s.dir.Sync()) }

func (s *store) close() {
	if s.file != nil {
		s.file.Close()
	}
	s.dir.Close()
}

// failure is an error with its kind, which can be that of a path inside it.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return errdefs.New(errdefs.KindOf(err), "%s: %w", what, err)
}
