// Package errdefs is the closed list of error kinds that cross a boundary: each
// has one errno name, which clients act on, and one exit code. Everything else
// about an error is text for people.
//
// Inside a program errors are wrapped with %w as usual; KindOf finds the kind
// of the outermost typed error, or derives one from a system errno below it.
package errdefs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"cortexfs.org/libctx"
)

// Kind is an error kind, spelled as the errno name the wire carries.
type Kind string

// The kinds, in the words of docs/reference/errors.md.
const (
	Invalid     Kind = "EINVAL"       // undecodable, unknown, out of range, or refused as configured
	TooBig      Kind = "EMSGSIZE"     // a frame over its limit
	Denied      Kind = "EACCES"       // the peer or the agent may not
	Busy        Kind = "EAGAIN"       // a queue is full, or another owner has it: try again
	NotFound    Kind = "ENOENT"       // no such agent, session, run, tool
	Exists      Kind = "EEXIST"       // it is there already
	Already     Kind = "EALREADY"     // it has already been done
	Protocol    Kind = "EPROTO"       // an executable broke its contract
	NoSpace     Kind = "ENOSPC"       // the disk, a quota or a ledger is full
	IO          Kind = "EIO"          // storage failed or is damaged
	Interrupted Kind = "EINTR"        // the host died while it ran
	Cancelled   Kind = "ECANCELED"    // somebody cancelled it
	Provider    Kind = "EREMOTEIO"    // a model provider failed
	Timeout     Kind = "ETIMEDOUT"    // a deadline passed
	TooMuch     Kind = "E2BIG"        // prompt over the window, or more steps than a run may take
	Unsupported Kind = "ENOSYS"       // known, but not offered here
	Unavailable Kind = "ECONNREFUSED" // the service is not there
	Internal    Kind = "EFAULT"       // a defect of ours
)

// exits maps kinds to exit codes; a kind that is not listed exits 1.
var exits = map[Kind]int{
	Invalid: 2, TooBig: 2,
	Denied:      13,
	Unavailable: 69, Unsupported: 69,
	Internal:  70,
	Cancelled: 130,
}

// Exit is the exit code of a program that ends with this kind
// (docs/reference/errors.md): 1, 2, 13, 69, 70 or 130.
func (k Kind) Exit() int {
	if c, ok := exits[k]; ok {
		return c
	}
	return 1
}

// Error is an error with a kind, and optionally one hint: what to do about it.
type Error struct {
	Kind Kind
	Text string // what failed and why, one line
	Hint string // what to do, one line; may be empty
	Err  error  // cause, may be nil
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind. The format may use %w once or more.
func New(k Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Text: err.Error(), Err: err}
}

// WithHint adds what to do about the error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// HintOf is the hint of the outermost error that has one.
func HintOf(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// KindOf is the kind of an error: that of the outermost *Error in its chain,
// else Invalid for a bad name, else what the system errno below says, else
// Internal. KindOf(nil) is "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var name *libctx.NameError
	if errors.As(err, &name) {
		return Invalid
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return ofErrno(errno)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, fs.ErrNotExist):
		return NotFound
	case errors.Is(err, fs.ErrPermission):
		return Denied
	}
	return Internal
}

func ofErrno(e syscall.Errno) Kind {
	switch e {
	case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG:
		return NoSpace
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		return Denied
	case syscall.ENOENT, syscall.ENOTDIR:
		return NotFound
	case syscall.EEXIST:
		return Exists
	case syscall.EINVAL, syscall.ELOOP, syscall.EXDEV, syscall.ENAMETOOLONG, syscall.EISDIR:
		return Invalid
	case syscall.EAGAIN, syscall.EBUSY, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return Busy
	case syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE:
		return Unavailable
	case syscall.ETIMEDOUT:
		return Timeout
	case syscall.EINTR:
		return Interrupted
	}
	return IO
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }
