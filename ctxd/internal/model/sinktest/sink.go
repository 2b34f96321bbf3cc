// Package sinktest is what tests of drivers read answers with.
package sinktest

import (
	"fmt"
	"strconv"
	"strings"

	"cortexfs.org/libctx/modelwire"
)

// Sink keeps the frames of an answer, checked as the server checks them.
type Sink struct {
	stream modelwire.Stream
	Frames []modelwire.Frame
}

// Send checks a frame and keeps it (model.Sink).
func (s *Sink) Send(f modelwire.Frame) error {
	line, err := modelwire.MarshalFrame(f)
	if err != nil {
		return err
	}
	if _, err := s.stream.Next(line[:len(line)-1]); err != nil {
		return err
	}
	s.Frames = append(s.Frames, f)
	return nil
}

// String is the frames as text, one a line, without start and the calls' ends.
func (s *Sink) String() string {
	var out strings.Builder
	for _, f := range s.Frames {
		switch f := f.(type) {
		case *modelwire.Start, *modelwire.CallEnd:
		case *modelwire.Delta:
			fmt.Fprintf(&out, "text %s\n", f.Text)
		case *modelwire.ReasoningDelta:
			fmt.Fprintf(&out, "think %s\n", f.Text)
		case *modelwire.CallStart:
			fmt.Fprintf(&out, "call %d %s %s\n", f.Index, f.ID, f.Name)
		case *modelwire.CallDelta:
			fmt.Fprintf(&out, "args %d %s\n", f.Index, f.Text)
		case *modelwire.MessageFrame:
			fmt.Fprintf(&out, "stop %s\n", f.Stop)
			for _, p := range f.Content {
				fmt.Fprintf(&out, "  %s %s%s%s%s", p.Type, p.Call, p.Name, string(p.Arguments), p.Text)
				if p.Invalid != "" {
					fmt.Fprintf(&out, " !%s", p.Invalid)
				}
				out.WriteByte('\n')
			}
			if f.Opaque != nil {
				fmt.Fprintf(&out, "  opaque %s %s\n", f.Opaque.Model, f.Opaque.Data)
			}
		case *modelwire.Usage:
			n := func(p *int64) string {
				if p == nil {
					return "-"
				}
				return strconv.FormatInt(*p, 10)
			}
			fmt.Fprintf(&out, "usage %s %s %s %s %s\n", n(f.Input), n(f.CacheRead), n(f.CacheWrite), n(f.Output), n(f.Reasoning))
		default:
			fmt.Fprintf(&out, "%s\n", f.Kind())
		}
	}
	return out.String()
}
