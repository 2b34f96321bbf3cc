package terminal

import (
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
)

// Report is the one datagram by which a launcher tells who started it how the
// start went: Ready with the launcher's PID once the terminal's socket answers,
// else Code and Message.
type Report struct {
	Ready   bool         `json:"ready,omitzero"`
	PID     int          `json:"pid,omitzero"`
	Code    errdefs.Kind `json:"code,omitzero"`
	Message string       `json:"message,omitzero"`
	Hint    string       `json:"hint,omitzero"`
}

// Failed is the report of a start that failed.
func Failed(err error) Report {
	return Report{Code: errdefs.KindOf(err), Message: err.Error(), Hint: errdefs.HintOf(err)}
}

// Text is the report as the datagram carries it: one JSON line.
func (r Report) Text() []byte {
	r.Message, r.Hint = wire.Clean([]byte(r.Message)), wire.Clean([]byte(r.Hint))
	line, err := wire.Marshal(r)
	if err != nil { // nothing in it can fail to encode
		line = []byte(`{"code":"EFAULT","message":"a report that can not be encoded"}` + "\n")
	}
	return line
}

// ParseReport decodes the datagram of a launcher; errdefs.Invalid if it is none.
func ParseReport(text []byte) (Report, error) {
	var r Report
	if err := wire.Object(text, &r); err != nil {
		return Report{}, err
	}
	if r.Ready != (r.Code == "") || r.Ready && r.PID < 1 {
		return Report{}, errdefs.New(errdefs.Invalid, "a report neither of a success nor of a failure")
	}
	return r, nil
}

// Err is the failure that the report tells of, nil if it is Ready.
func (r Report) Err() error {
	if r.Ready {
		return nil
	}
	err := errdefs.New(r.Code, "%s", r.Message)
	err.Hint = r.Hint
	return err
}
