package attach

import (
	"context"
	"fmt"
	"strings"

	"cortexfs.org/libctx/termwire"
	"golang.org/x/sys/unix"
)

// helpText says what the keys are, on a terminal in raw mode.
func helpText(name string, k Key, watch bool) string {
	var b strings.Builder
	does := "You are attached to"
	if watch {
		does = "You are watching"
	}
	fmt.Fprintf(&b, "%s %s. The program goes on when you leave.\n\n", does, name)
	fmt.Fprintf(&b, "  %-16s leave\n", k.String()+" d")
	if watch {
		fmt.Fprintf(&b, "  %-16s leave\n", "q, Ctrl+C")
	} else {
		fmt.Fprintf(&b, "  %-16s send %s to the program\n", k.String()+" "+k.String(), k)
	}
	fmt.Fprintf(&b, "  %-16s this\n\nAny key goes back.", k.String()+" ?")
	return strings.ReplaceAll(b.String(), "\n", "\r\n")
}

// help shows what the keys are and waits for one. It reports false, and the end,
// when there is no going back.
func (v *viewer) help(ctx context.Context) (back bool, end result) {
	v.mu.Lock()
	fmt.Fprintf(v.Out, "%s\x1b[H\x1b[J%s", termwire.ResetSequence, helpText(v.Name, v.Key, v.watch))
	v.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return false, result{err: context.Cause(ctx)}
		case _, ok := <-v.typed:
			return ok, gone
		case s := <-v.signals:
			switch s {
			case unix.SIGWINCH, unix.SIGCONT, unix.SIGTSTP: // the next picture fits again
			default:
				return false, signalled(s)
			}
		}
	}
}
