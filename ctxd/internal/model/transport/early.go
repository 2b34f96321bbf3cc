package transport

import "errors"

// Early reports that the answer ended as its connection should, between two
// events, and before its last one. Formats whose last event may lack something
// decide themselves whether that is an end.
func (e *Error) Early() bool { return errors.Is(e.Err, errEarly) }
