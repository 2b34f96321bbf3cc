package daemon

import (
	"os"
	"os/signal"

	"cortexfs.org/ctxd/internal/config"
	"cortexfs.org/ctxd/internal/notify"
	"cortexfs.org/libctx/log"
	"golang.org/x/sys/unix"
)

// supervised is the supervisor of this process. Where there is one, a hang-up is
// no reason to end: there is nothing that is not read anew for every request. The
// result ends what was begun.
func supervised(logger *log.Logger) (*notify.Supervisor, func()) {
	address, watchdog := config.Supervisor()
	s := notify.New(address, watchdog, logger)
	if !s.Present() {
		return s, func() {}
	}
	hangups, over := make(chan os.Signal, 1), make(chan struct{})
	// Taken, and not ignored: what is started would inherit that.
	signal.Notify(hangups, unix.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				logger.Info("hang-up: files are read anew for every request, there is nothing else to read")
			case <-over:
				return
			}
		}
	}()
	return s, func() {
		signal.Stop(hangups)
		close(over)
	}
}

// newLog writes to standard error, as entries if that is the journal.
func newLog(level string) (*log.Logger, error) {
	if config.Journal() {
		return log.NewJournal(os.Stderr, level)
	}
	return log.New(os.Stderr, level)
}
