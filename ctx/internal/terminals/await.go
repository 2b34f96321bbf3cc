package terminals

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/supervise"
	"cortexfs.org/libctx/terminal"
)

// startDeadline is how long a launcher may take until its terminal answers: a
// sandbox, then its first line.
const startDeadline = libctx.SandboxStart + 2*libctx.TermHello

// await waits for the launcher's report, for its end, or for too long.
func (s *start) await(ctx context.Context, box *mailbox, log string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline,
		errdefs.New(errdefs.Timeout, "terminal %s: was not ready in %s", s.place, startDeadline))
	defer cancel()
	type answer struct {
		terminal.Report
		err error
	}
	said := make(chan answer, 1)
	go func() { // ends with the mailbox at the latest
		r, err := box.read(time.Time{})
		said <- answer{r, err}
	}()
	launcher, err := procid.Open(s.instance.PID)
	if err != nil && !errdefs.Is(err, errdefs.NotFound) {
		return err
	}
	ended := make(chan struct{})
	if err == nil {
		waited := make(chan struct{})
		defer func() { // the handle is not closed under who waits on it
			cancel()
			<-waited
			launcher.Close()
		}()
		go func() {
			defer close(waited)
			if launcher.Wait(ctx) == nil {
				close(ended)
			}
		}()
	} else {
		close(ended)
	}
	select {
	case a := <-said:
		return s.outcome(a.Report, a.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-ended:
	}
	// What it said last may be there already.
	box.sock.SetReadDeadline(time.Now().Add(time.Millisecond))
	a := <-said
	if errors.Is(a.err, errNoReport) {
		return s.died(log)
	}
	return s.outcome(a.Report, a.err)
}

// outcome is what a report means.
func (s *start) outcome(r terminal.Report, err error) error {
	switch {
	case err != nil:
		return err
	case r.Err() != nil:
		return r.Err()
	case r.PID != s.instance.PID:
		return errdefs.New(errdefs.Protocol, "terminal %s: process %d reports for process %d", s.place, r.PID, s.instance.PID)
	}
	return nil
}

// died is the error of a launcher that ended without a word, but for those in its
// log.
func (s *start) died(log string) error {
	err := errdefs.New(errdefs.Unavailable, "terminal %s: its launcher ended at once", s.place)
	if s.instance.Supervisor == supervise.Systemd {
		return err.WithHint("journalctl --user -u '%s' shows what it said", s.instance.Unit)
	}
	if line := lastLine(log); line != "" {
		err.Text += ": " + line
	}
	return err
}

// lastLine is the last line of a log, at most 4 KiB of it.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4<<10)
	if st, err := f.Stat(); err == nil {
		n, _ := f.ReadAt(b, max(0, st.Size()-int64(len(b)))) // the end of the file is no failure
		b = bytes.TrimRight(b[:n], "\n")
	}
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}
