package terminals

import (
	"context"
	"fmt"
	"os"

	"cortexfs.org/ctx/internal/attach"
	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/ctx/internal/runs"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/terminal"
	"golang.org/x/sys/unix"
)

// ShowOptions of a terminal that is shown.
type ShowOptions struct {
	Escape  *string // the key, nil for the default
	Signals func() <-chan os.Signal
}

func (o ShowOptions) attach(from *caller.Caller, p terminal.Place) (attach.Options, error) {
	key := attach.DefaultKey
	if o.Escape != nil {
		var err error
		if key, err = attach.ParseKey(*o.Escape); err != nil {
			return attach.Options{}, errdefs.New(errdefs.Invalid, "flag --escape: %w", err)
		}
	}
	if !p.Owner.IsSelf() { // the terminal would say so, if this process could come to it
		return attach.Options{}, errdefs.New(errdefs.Denied, "terminal %s: belongs to uid %d, and nobody else watches or joins it", p, p.Owner.UID)
	}
	return attach.Options{
		Name: p.String(), Sockets: []string{p.Layout.TerminalLink(p.Owner.UID, p.Agent, p.Session), p.Layout.TerminalSocket(p.Agent, p.Session)},
		Hint: fmt.Sprintf("start it: ctx agent start%s %s", sessionFlag(p.Session), p.Agent),
		Term: from.Config.Term, Key: key, Signals: o.Signals,
	}, nil
}

// Attach joins a terminal. When its program ends, the error is its exit code
// (runs.ExitError); leaving is none.
func Attach(ctx context.Context, from *caller.Caller, p terminal.Place, o ShowOptions) error {
	a, err := o.attach(from, p)
	if err != nil {
		return err
	}
	var in, out bool
	a.In, in = from.In.(*os.File)
	a.Out, out = from.Out.(*os.File)
	if !in || !out || !from.Config.Stdin || !from.Config.Stdout {
		return errdefs.New(errdefs.Invalid, "standard input and output have to be a terminal").
			WithHint("ctx terminal watch %s copies what it shows, into a pipe too", p)
	}
	end, err := attach.Attach(ctx, a)
	if err != nil {
		return err
	}
	note(from, p, end)
	if !end.Left && end.Code != 0 {
		return runs.ExitError(end.Code)
	}
	return nil
}

// Watch shows a terminal: on one until its program ends or the person leaves,
// into anything else byte for byte.
func Watch(ctx context.Context, from *caller.Caller, p terminal.Place, o ShowOptions) error {
	a, err := o.attach(from, p)
	if err != nil {
		return err
	}
	var in, out bool
	a.In, in = from.In.(*os.File)
	a.Out, out = from.Out.(*os.File)
	if !in || !out || !from.Config.Stdout {
		return copyOut(ctx, from, p, a)
	}
	end, err := attach.Watch(ctx, a)
	if err != nil {
		return err
	}
	note(from, p, end)
	return nil
}

// copyOut is Watch into a pipe or a file.
func copyOut(ctx context.Context, from *caller.Caller, p terminal.Place, a attach.Options) error {
	if a.Out != nil {
		gone, stop := attach.GoneReader(a.Out)
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case <-gone:
				cancel()
			case <-ctx.Done():
			}
		}()
		defer func() {
			cancel()
			<-ended
			stop()
		}()
	}
	end, err := attach.Pipe(ctx, a, from, func() {
		from.Warn("output was left out: it is not read fast enough")
	})
	switch {
	case from.Failed() != nil:
		return from.Failed()
	case ctx.Err() != nil: // nobody reads any more: as if this had been noticed by writing
		return runs.ExitError(128 + int(unix.SIGPIPE))
	case err != nil:
		return err
	}
	note(from, p, end)
	return nil
}

// note says how it came to an end.
func note(from *caller.Caller, p terminal.Place, end attach.End) {
	if end.Left {
		from.Note(fmt.Sprintf("[detached from %s]", p))
		return
	}
	from.Note(fmt.Sprintf("[%s ended: exit code %d]", p, end.Code))
}
