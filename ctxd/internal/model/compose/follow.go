package compose

import (
	"errors"

	"cortexfs.org/ctxd/internal/model/transport"
	"cortexfs.org/libctx/modelwire"
)

// Follow gives every event of a stream to take, the last one included, and says
// with end how it ended: nil is an end behind the last event. A failure that take
// returns is completed as Fail does; any other error is of the Sink.
func (a *Answer) Follow(stream *transport.Stream, take func(transport.Event) error, end func(*transport.Error) error) error {
	for {
		ev, err := stream.Next()
		if err != nil {
			var broken *transport.Error
			errors.As(err, &broken)
			return end(broken)
		}
		if err := take(ev); err != nil {
			var f *modelwire.Failure
			if errors.As(err, &f) {
				return a.Fail(f)
			}
			return err
		}
	}
}
