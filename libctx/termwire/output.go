package termwire

import (
	"bytes"
	"encoding/base64"
	"strconv"
)

// decodeOutput decodes a line that is exactly what AppendOutput writes, which
// nearly every line of a busy terminal is, without reflection; nil for any
// other.
func decodeOutput(line []byte) *Bytes {
	rest, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte(outputHead))
	if !ok {
		return nil
	}
	digits, rest, ok := bytes.Cut(rest, []byte(outputMiddle))
	if !ok {
		return nil
	}
	text, ok := bytes.CutSuffix(rest, []byte(outputTail))
	if !ok {
		return nil
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || len(digits) > 1 && digits[0] == '0' || bytes.ContainsAny(text, "\r\n") {
		return nil
	}
	data, err := base64.StdEncoding.Strict().AppendDecode(make([]byte, 0, base64.StdEncoding.DecodedLen(len(text))), text)
	if err != nil {
		return nil
	}
	return &Bytes{Seq: seq, Data: data}
}
