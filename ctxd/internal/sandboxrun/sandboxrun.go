// Package sandboxrun starts programs in sandboxes and ends them. It is the only
// package of the daemon that starts processes inside one.
package sandboxrun

import (
	"context"
	"io"
	"time"

	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/log"
	"cortexfs.org/libctx/procid"
	"cortexfs.org/libctx/sandbox"
)

// Config is what a Launcher needs to know of the host.
type Config struct {
	Bwrap string      // bubblewrap; "" looks in a fixed list of places, never in PATH
	Entry string      // ctxtool on the host: its first step inside every sandbox
	Log   *log.Logger // nil logs nothing
}

// Stdio is what a payload reads and where its output goes.
type Stdio struct {
	Stdin          []byte    // all of it; none reads /dev/null
	Stdout, Stderr io.Writer // each called from one goroutine; nil discards
	// Started, if set, is told the first process of the sandbox before anything
	// of the payload runs. An error gives the launch up and is returned.
	Started func(procid.ID) error
}

// Result is how a payload ended.
type Result struct {
	ExitCode int           // 128 + n for a death by signal n
	Duration time.Duration // from the start of the launch until nothing of it was left
}

// Launcher starts sandboxes. Its methods may be called from any goroutine.
type Launcher struct{}

// New checks the host once and starts a launcher; the caller closes it.
func New(cfg Config) (*Launcher, error) { return &Launcher{}, Check(cfg) }

// Check tells whether sandboxes can be started here.
func Check(cfg Config) error {
	return errdefs.New(errdefs.Unavailable, "sandbox: not offered yet")
}

// Close kills what was started and waits until it is gone.
func (l *Launcher) Close() error { return nil }

// Run runs one payload.
func (l *Launcher) Run(ctx context.Context, s sandbox.Spec, io Stdio) (Result, error) {
	return Result{}, errdefs.New(errdefs.Unsupported, "sandbox: not offered yet")
}
