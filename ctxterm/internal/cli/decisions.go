package cli

import (
	"os"
	"path/filepath"

	"cortexfs.org/ctxterm/internal/journal"
	"cortexfs.org/libctx/errdefs"
	"golang.org/x/sys/unix"
)

// maxDecision bounds one decision of the tool shell, in bytes.
const maxDecision = 4 << 10

// decides reports whether a program is the tool shell, which tells what it
// decides. No other program gets the descriptor to tell by.
func decides(argv []string) bool { return filepath.Base(argv[0]) == "tsh" }

// decisions makes the pair of sockets by which the tool shell tells, one packet
// each, what it has decided. What comes is noted in the record by a goroutine
// that ends when nobody can tell any more. It is what the program says of
// itself: nothing depends on it. The caller closes the program's side once the
// program has it.
func decisions(record *journal.Journal) (program *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errdefs.New(errdefs.KindOf(err), "decisions: %w", err)
	}
	unix.Shutdown(pair[0], unix.SHUT_WR)
	unix.SetNonblock(pair[0], true)
	ours := os.NewFile(uintptr(pair[0]), "decisions")
	go func() {
		defer ours.Close()
		buf := make([]byte, maxDecision)
		for {
			n, err := ours.Read(buf)
			if err != nil {
				return
			}
			record.Wait()              // what tells faster than the disk takes waits
			_ = record.Policy(buf[:n]) // what is no decision is not noted
		}
	}()
	return os.NewFile(uintptr(pair[1]), "decisions"), nil
}
