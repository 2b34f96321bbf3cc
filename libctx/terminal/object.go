package terminal

import (
	"strconv"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
	"cortexfs.org/libctx/wire"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// receiptKey is the member of a meta.json that holds a receipt.
const receiptKey = "runtime_receipt"

// withReceipt is the text of a meta.json, nil for a missing one, with another
// receipt and everything else as it was.
func withReceipt(text []byte, receipt jsontext.Value) ([]byte, error) {
	meta := map[string]jsontext.Value{}
	if len(text) > 0 {
		if err := object(text, &meta); err != nil {
			return nil, err
		}
	}
	meta[receiptKey] = receipt
	out, err := json.Marshal(meta, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, errdefs.New(errdefs.Invalid, "%s: %w", MetaFile, err)
	}
	if len(out) >= libctx.MaxControlFile {
		return nil, errdefs.New(errdefs.TooBig, "%s: would be longer than %d bytes", MetaFile, libctx.MaxControlFile)
	}
	return append(out, '\n'), nil
}

func object(text []byte, v any) error {
	if err := wire.Object(text, v); err != nil {
		return errdefs.New(errdefs.Invalid, "%s: %w", MetaFile, err)
	}
	return nil
}

func uidText(uid uint32) string { return strconv.FormatUint(uint64(uid), 10) }
