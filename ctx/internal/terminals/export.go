package terminals

import (
	"errors"
	"io"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/inert"
	"cortexfs.org/libctx/terminal"
)

// Export writes what a terminal showed, as far as it is kept: byte for byte, on
// a terminal made inert; as an asciicast if cast is set. A line of the record
// that can not be read is warned about, and is an error at the end
// (errdefs.IO).
func Export(from *caller.Caller, p terminal.Place, cast bool) error {
	m, err := p.Load()
	if err != nil && !errdefs.Is(err, errdefs.Invalid) { // a damaged meta.json is no reason
		return err
	}
	events, err := p.Events()
	if err != nil {
		return err
	}
	defer events.Close()
	write, finish := exact(from)
	if cast {
		c := &recorder{from: from, title: p.String(), started: m.Size}
		write, finish = c.event, c.finish
	}
	damaged := 0
	for {
		e, err := events.Next()
		var damage *terminal.Damage
		switch {
		case errors.Is(err, io.EOF):
			if err := finish(); err != nil {
				return err
			}
			if damaged > 0 {
				return errdefs.New(errdefs.IO, "terminal %s: %d lines of its record can not be read", p, damaged)
			}
			return nil
		case errors.As(err, &damage):
			damaged++
			from.Warn(damage.Error())
		case err != nil:
			return err
		default:
			if err := write(e); err != nil {
				return err
			}
		}
	}
}

// exact writes output as it was.
func exact(from *caller.Caller) (write func(terminal.Event) error, finish func() error) {
	if !from.OutTTY {
		return func(e terminal.Event) error {
			_, err := from.Write(e.Data)
			return err
		}, func() error { return nil }
	}
	var safe inert.Inert // characters may be cut between two events
	write = func(e terminal.Event) error {
		_, err := from.Write(safe.Append(nil, e.Data))
		return err
	}
	return write, func() error {
		_, err := from.Write(safe.Flush(nil))
		return err
	}
}
