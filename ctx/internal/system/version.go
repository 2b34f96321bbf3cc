package system

import (
	"io"
	"strconv"

	"cortexfs.org/ctx/internal/caller"
	"cortexfs.org/libctx"
)

// Version prints which ctx this is.
func Version(from *caller.Caller) error {
	if from.JSON {
		return from.Object(struct {
			Version string `json:"version"`
			Build   string `json:"build"`
		}{libctx.Version, libctx.Build()})
	}
	_, err := io.WriteString(from, "ctx "+libctx.Build()+"\n")
	return err
}

// ABI prints the versions of what others build on: the interface of executable
// agents, the socket's protocol, the ledger's format.
func ABI(from *caller.Caller) error {
	return from.Record(struct {
		ABI      string `json:"abi"`
		Envelope string `json:"envelope"`
		Protocol int    `json:"protocol"`
		Ledger   int    `json:"ledger"`
	}{libctx.ABI, libctx.EnvelopeSchema, libctx.Protocol, libctx.LedgerFormat},
		"abi", libctx.ABI, "envelope", libctx.EnvelopeSchema,
		"protocol", itoa(libctx.Protocol), "ledger", itoa(libctx.LedgerFormat))
}

func itoa(n int) string { return strconv.Itoa(n) }
