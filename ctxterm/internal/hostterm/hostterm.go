// Package hostterm is the terminal that ctxterm itself may have been started
// on: its size, and raw mode, in which every key goes to the program inside.
package hostterm

import (
	"os"

	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// SizeOf is the size of the terminal behind f; false if f is none, or one
// without a size.
func SizeOf(f *os.File) (termwire.Size, bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 || ws.Row == 0 {
		return termwire.Size{}, false
	}
	return termwire.Size{Cols: int(ws.Col), Rows: int(ws.Row)}, true
}

// Raw puts the terminal behind f into raw mode and returns what puts it back;
// for anything but a terminal both do nothing.
func Raw(f *os.File) (restore func()) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	raw := *before
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, unix.TCSETS, &raw) != nil {
		return func() {}
	}
	return func() { unix.IoctlSetTermios(fd, unix.TCSETS, before) }
}
