package daemon

import (
	"sync"
	"time"

	"cortexfs.org/ctxd/internal/host"
	"cortexfs.org/ctxd/internal/sandboxrun"
	"cortexfs.org/libctx/log"
)

// tryAgain is how long a failure to start sandboxes is believed.
const tryAgain = time.Second

// sandboxes is the launcher of an agent's server. That no sandbox can be started
// may be a passing trouble of the machine (no process to be had, the trial
// killed), so it is asked again, and the work gets its launcher once there is one.
type sandboxes struct {
	cfg  sandboxrun.Config
	work *host.Host
	log  *log.Logger

	mu       sync.Mutex
	launcher *sandboxrun.Launcher
	failed   error
	at       time.Time // of failed
}

// ready makes the launcher if there is none. Before it has returned nil once no
// work may begin.
func (s *sandboxes) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launcher != nil {
		return nil
	}
	if s.failed != nil && time.Since(s.at) < tryAgain {
		return s.failed
	}
	launcher, err := sandboxrun.New(s.cfg)
	if err != nil {
		s.failed, s.at = err, time.Now()
		s.log.Error("no sandbox", "why", err.Error())
		return err
	}
	s.launcher = launcher
	s.work.Launcher, s.work.Tools.Launcher = launcher, launcher
	return nil
}

// close ends what runs in the sandboxes.
func (s *sandboxes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launcher != nil {
		s.launcher.Close()
	}
}
