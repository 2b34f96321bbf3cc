// Package toolwire is the output format of tools whose mode is json: JSON lines
// on standard output, one start, any number of messages, at most one error, one
// done, nothing else. docs/reference/tools.md describes it for tool authors.
//
// The frames are a claim of the tool about itself: Decode checks their form and
// that they belong to the run, and never reads authority from them.
package toolwire

import (
	"cortexfs.org/libctx"
	"cortexfs.org/libctx/wire"
)

// The words of the status member of done.
const (
	statusOK    = "ok"
	statusError = "error"
)

// The frames, with exactly the members each kind has. Run is CTX_RUN_ID of the
// tool's environment, or empty.
type (
	start struct {
		Type string `json:"type"`
		Run  string `json:"run"`
		Tool string `json:"tool"`
	}
	message struct {
		Type    string `json:"type"`
		Run     string `json:"run"`
		Role    string `json:"role"`
		Content []text `json:"content"`
	}
	text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	failure struct {
		Type    string `json:"type"`
		Run     string `json:"run"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	done struct {
		Type      string `json:"type"`
		Run       string `json:"run"`
		Status    string `json:"status"`
		ExitCode  *int   `json:"exit_code,omitzero"`
		Truncated bool   `json:"truncated,omitzero"`
	}
)

// Result is what a tool's whole output says.
type Result struct {
	Tool      libctx.Tool // the name the tool gave itself
	Text      string      // of its messages, joined; at most libctx.MaxToolResultHard bytes
	Failed    *wire.Error // its error frame, nil if it succeeded
	ExitCode  *int        // of the command it ran, if it ran one
	Truncated bool        // by the tool itself, or by Read to keep the limit
}

// Content is what a model sees of the result: the text, and below it the
// message of a failure.
func (r Result) Content() string {
	if r.Failed == nil {
		return r.Text
	}
	if r.Text == "" {
		return r.Failed.Message
	}
	sep := "\n"
	if r.Text[len(r.Text)-1] == '\n' {
		sep = ""
	}
	return r.Text + sep + r.Failed.Message
}
